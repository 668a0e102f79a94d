/* JSON lines: about the job, each test, each sample, each rank that found wrong words. */
#include "report.h"

static void print_text(FILE *out, const char *text)
{
    putc('"', out);
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else if ((unsigned char)*text < ' ')
            fprintf(out, "\\u%04x", (unsigned)*text);
        else
            putc(*text, out);
    putc('"', out);
}

void events_open(FILE *out, const char *mark, int argc, char **argv)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int n;
    MPI_Get_library_version(library, &n);
    fprintf(out, "%s{\"event\": \"job\", \"command\": [", mark);
    for (int i = 0; i < argc; i++) {
        fputs(i ? ", " : "", out);
        print_text(out, argv[i]);
    }
    fputs("], \"mpi\": ", out);
    print_text(out, library);
    fputs("}\n", out);
}

void events_test(FILE *out, const char *mark, const struct test *t)
{
    fprintf(out,
            "%s{\"event\": \"test\", \"test\": %d, \"tasks\": %d, \"nodes\": %d, "
            "\"tasks_on_node0\": %d, \"block\": %lld, \"transfer\": %lld, \"segments\": %lld, "
            "\"repetitions\": %d, \"api\": ",
            mark, t->id, t->ranks, t->nodes, t->on_node0, (long long)t->o.block,
            (long long)t->o.transfer, (long long)t->o.segments, t->o.repetitions);
    print_text(out, t->o.api);
    fputs("}\n", out);
}

void events_sample(FILE *out, const char *mark, const struct test *t, int way,
                   const struct sample *s)
{
    fprintf(out,
            "%s{\"event\": \"sample\", \"test\": %d, \"way\": %d, \"api\": \"%s\", "
            "\"access\": \"%s\", \"iteration\": %d, \"bytes\": %lld, ",
            mark, t->id, way, t->ways[way].name, s->writing ? "write" : "read", s->repetition,
            (long long)s->bytes);
    fprintf(out,
            "\"bandwidth\": %.10g, \"iops\": %.10g, \"latency\": %.9f, \"open\": %.9f, "
            "\"move\": %.9f, \"close\": %.9f, \"total\": %.9f}\n",
            sample_bandwidth(s), sample_iops(s, t->o.transfer), s->latency, s->open, s->move,
            s->close, s->total);
}

void events_wrong(FILE *out, const char *mark, const struct test *t, int way, int repetition,
                  int rank, const char *text, const struct wrong *wrong)
{
    fprintf(out,
            "%s{\"event\": \"wrong\", \"test\": %d, \"way\": %d, \"iteration\": %d, \"rank\": %d, "
            "\"words\": %lld, \"offset\": %lld, \"expected\": \"%016llx\", \"found\": "
            "\"%016llx\", \"text\": ",
            mark, t->id, way, repetition, rank, (long long)wrong->words, (long long)wrong->offset,
            (unsigned long long)wrong->expected, (unsigned long long)wrong->found);
    print_text(out, text);
    fputs("}\n", out);
}

void events_failed(FILE *out, const char *mark, const char *text, int rank)
{
    fprintf(out, "%s{\"event\": \"failed\", \"rank\": %d, \"text\": ", mark, rank);
    print_text(out, text);
    fputs("}\n", out);
}
