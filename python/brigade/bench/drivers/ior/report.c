/* What is printed, in the form that was asked for: IOR's table, CSV, or JSON lines. Warnings and
 * errors go to standard error, but for the form `events`, whose reader shows them. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "report.h"

#define MIB 1048576.0

static enum {
    TABLE,
    CSV,
    JSON
} form;
static FILE *out;
static const char *mark = "";

static void choose_form(const struct options *o)
{
    if (strcasecmp(o->format, "csv") == 0)
        form = CSV;
    else if (strcasecmp(o->format, "default") != 0)
        form = JSON;
    if (strcasecmp(o->format, "events") == 0)
        mark = MARK;
}

void report_open(const struct test *t, int argc, char **argv)
{
    choose_form(&t->o);
    out = stdout;
    if (*t->o.summary_file && !(out = fopen(t->o.summary_file, "w")))
        fail("summaryFile: %s: %s", t->o.summary_file, strerror(errno));
    if (form == TABLE)
        table_open(out, argc, argv);
    else if (form == JSON)
        events_open(out, mark, argc, argv);
    else
        fprintf(out, "access,bw(MiB/s),IOPS,Latency,block(KiB),xfer(KiB),open(s),wr/rd(s),close(s),"
                     "total(s),numTasks,iter,api,test\n");
    fflush(out);
}

void report_test(const struct test *t)
{
    if (form == TABLE)
        table_test(out, t);
    else if (form == JSON)
        events_test(out, mark, t);
    fflush(out);
}

void report_sample(const struct test *t, int way, const struct sample *s)
{
    if (form == TABLE)
        table_sample(out, t, way, s);
    else if (form == JSON)
        events_sample(out, mark, t, way, s);
    else
        fprintf(out, "%s,%.4f,%.4f,%.6f,%.4f,%.4f,%.6f,%.6f,%.6f,%.6f,%d,%d,%s,%d\n",
                s->writing ? "write" : "read", sample_bandwidth(s) / MIB,
                sample_iops(s, t->o.transfer), s->latency, (double)t->o.block / 1024,
                (double)t->o.transfer / 1024, s->open, s->move, s->close, s->total, t->ranks,
                s->repetition, t->ways[way].name, t->id);
    fflush(out);
}

void report_removed(const struct test *t, int way, int repetition, double seconds)
{
    if (form == TABLE && t->o.verbose)
        table_removed(out, t, way, repetition, seconds);
}

/* Whose word stands there, as far as a word says it. */
static void explain(const struct test *t, uint64_t word, int as, char *text, size_t room)
{
    struct owner owner;
    if (word == 0)
        snprintf(text, room, "zeros");
    else if (!word_owner(t, word, &owner))
        snprintf(text, room, "which no task of this test wrote");
    else if (owner.rank == as)
        snprintf(text, room, "that of offset %lld", (long long)owner.offset);
    else
        snprintf(text, room, "that of task %d at offset %lld", owner.rank, (long long)owner.offset);
}

void report_wrong(const struct test *t, int way, int repetition, int rank, int as,
                  const struct wrong *wrong)
{
    char path[PATH_ROOM], found[128], text[PATH_ROOM + 512];
    file_name(t, way, as, repetition, path);
    explain(t, wrong->found, as, found, sizeof found);
    snprintf(text, sizeof text,
             "%s: offset %lld: expected %016llx, the word of task %d, found %016llx, %s; "
             "rank %d found %lld wrong words, first this",
             path, (long long)wrong->offset, (unsigned long long)wrong->expected, as,
             (unsigned long long)wrong->found, found, rank, (long long)wrong->words);
    warn("%s", text);
    if (form == JSON)
        events_wrong(out, mark, t, way, repetition, rank, text, wrong);
}

void report_failed(const char *text, int rank)
{
    if (*mark) {
        events_failed(stdout, mark, text, rank);
        fflush(stdout);
    } else {
        fprintf(stderr, "brigade-ior: rank %d: %s\n", rank, text);
    }
}

void report_summary(const struct test *tests, int ntests)
{
    if (form == TABLE)
        table_summary(out, tests, ntests);
    if (out != stdout)
        fclose(out);
}

void warn(const char *format, ...)
{
    va_list words;
    va_start(words, format);
    fputs("WARNING: ", stderr);
    vfprintf(stderr, format, words);
    fputs("\n", stderr);
    va_end(words);
}
