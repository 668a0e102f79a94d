/* IOR's table: the same columns, widths and digits, so that what reads IOR's output reads this. */
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "ior.h"
#include "report.h"

#define MIB 1048576.0

static void print_key(FILE *out, const char *key, const char *value)
{
    fprintf(out, "%-20s: %s\n", key, value);
}

static void print_number(FILE *out, const char *key, int64_t value)
{
    fprintf(out, "%-20s: %lld\n", key, (long long)value);
}

static void print_size(FILE *out, const char *key, int64_t bytes)
{
    static const char *const units[] = {"MiB", "GiB", "TiB"};
    int unit = 2;
    while (unit >= 0 && bytes < 1LL << (20 + 10 * unit))
        unit--;
    if (unit < 0)
        fprintf(out, "%-20s: %lld bytes\n", key, (long long)bytes);
    else
        fprintf(out, bytes % (1LL << (20 + 10 * unit)) ? "%-20s: %.2f %s\n" : "%-20s: %.0f %s\n",
                key, (double)bytes / (double)(1LL << (20 + 10 * unit)), units[unit]);
}

static void print_now(FILE *out, const char *key)
{
    char text[64];
    time_t seconds = time(NULL);
    strftime(text, sizeof text, "%a %b %e %H:%M:%S %Y", localtime(&seconds));
    print_key(out, key, text);
}

void table_open(FILE *out, int argc, char **argv)
{
    struct utsname host;
    fprintf(out, "brigade-ior: MPI Coordinated Test of Parallel I/O, as IOR 4.1 does it\n");
    print_now(out, "Began");
    fprintf(out, "%-20s:", "Command line");
    for (int i = 0; i < argc; i++)
        fprintf(out, " %s", argv[i]);
    uname(&host);
    fprintf(out, "\n%-20s: %s %s\n", "Machine", host.sysname, host.nodename);
}

static void print_order(FILE *out, const struct test *t)
{
    const struct options *o = &t->o;
    print_key(out, "ordering in a file", o->random_offset ? "random" : "sequential");
    print_key(out, "ordering inter file",
              o->reorder          ? "constant task offset"
              : o->reorder_random ? "random task offset"
                                  : "no tasks offsets");
    if (o->reorder || o->reorder_random)
        print_number(out, "task offset", o->offset_tasks);
    if (o->reorder_random)
        print_number(out, "reorder random seed", o->reorder_seed);
}

void table_test(FILE *out, const struct test *t)
{
    const struct options *o = &t->o;
    print_number(out, "TestID", t->id);
    print_now(out, "StartTime");
    fprintf(out, "\nOptions: \n");
    print_key(out, "api", o->api);
    print_key(out, "test filename", o->path);
    print_key(out, "access", o->own_file ? "file-per-process" : "single-shared-file");
    print_key(out, "type", o->collective ? "collective" : "independent");
    print_number(out, "segments", o->segments);
    print_order(out, t);
    print_number(out, "nodes", t->nodes);
    print_number(out, "tasks", t->ranks);
    print_number(out, "clients per node", t->on_node0);
    print_number(out, "repetitions", o->repetitions);
    print_size(out, "xfersize", o->transfer);
    print_size(out, "blocksize", o->block);
    print_size(out, "aggregate filesize", o->block * o->segments * t->ranks);
    if (o->deadline) {
        print_number(out, "stonewallingTime", o->deadline);
        print_number(out, "stoneWallingWearOut", o->wear_out);
    }
    fprintf(out,
            "\nResults: \n\n"
            "access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    "
            "wr/rd(s)   close(s)   total(s)   iter%s\n"
            "------    ---------  ----       ----------  ---------- ---------  --------   "
            "--------   --------   --------   ----%s\n",
            t->nways > 1 ? " api" : "", t->nways > 1 ? " ---" : "");
}

/* A figure of a row, as wide and exact as IOR's. */
static void print_figure(FILE *out, double value, const char *after)
{
    if (value < 0)
        fprintf(out, "   -      %s", after);
    else
        fprintf(out, "%-10.*f%s", value < 1 ? 6 : value < 3600 ? 2 : 0, value, after);
}

static void print_end(FILE *out, const struct test *t, int way, int repetition)
{
    if (t->nways > 1)
        fprintf(out, "%-4d %s\n", repetition, t->ways[way].name);
    else
        fprintf(out, "%-4d\n", repetition);
}

void table_sample(FILE *out, const struct test *t, int way, const struct sample *s)
{
    fprintf(out, "%-10s", s->writing ? "write" : "read");
    print_figure(out, sample_bandwidth(s) / MIB, " ");
    print_figure(out, sample_iops(s, t->o.transfer), " ");
    print_figure(out, s->latency, "  ");
    print_figure(out, (double)t->o.block / 1024, " ");
    print_figure(out, (double)t->o.transfer / 1024, " ");
    print_figure(out, s->open, " ");
    print_figure(out, s->move, " ");
    print_figure(out, s->close, " ");
    print_figure(out, s->total, " ");
    print_end(out, t, way, s->repetition);
}

void table_removed(FILE *out, const struct test *t, int way, int repetition, double seconds)
{
    fprintf(out, "%-10s%-11s%-11s%-12s%-11s%-11s%-11s%-11s%-11s", "remove", "-", "-", "-", "-", "-",
            "-", "-", "-");
    print_figure(out, seconds, " ");
    print_end(out, t, way, repetition);
}

static void print_summary(FILE *out, const struct test *t, int way, int writing)
{
    const struct options *o = &t->o;
    struct figures bandwidth, operations;
    double seconds, wall = 0, wall_bytes = 0;
    int n = o->repetitions;
    const struct sample *first = sample_of(t, way, 0, writing);
    summary_of(first, n, 2, o->transfer, &bandwidth, &operations, &seconds);
    for (int i = 0; i < n; i++) {
        wall += first[2 * i].wall;
        wall_bytes += first[2 * i].wall_bytes;
    }
    fprintf(out, "%-9s %10.2f %10.2f %10.2f %10.2f ", writing ? "write" : "read",
            bandwidth.max / MIB, bandwidth.min / MIB, bandwidth.mean / MIB,
            bandwidth.deviation / MIB);
    fprintf(out, "%10.2f %10.2f %10.2f %10.2f %10.5f ", operations.max, operations.min,
            operations.mean, operations.deviation, seconds);
    if (o->wear_out)
        fprintf(out, "%10.2f %13.2f ", wall / n, wall > 0 ? wall_bytes / wall / MIB : 0);
    else
        fprintf(out, "%10s %13s ", "NA", "NA");
    fprintf(out, "%5d %6d %3d %4d %3d %5d %8d %9d %4d %6lld %8lld %8lld %9.1f %3s %6d\n", t->id,
            t->ranks, t->on_node0, n, o->own_file, o->reorder, o->offset_tasks, o->reorder_random,
            o->reorder_seed, (long long)o->segments, (long long)o->block, (long long)o->transfer,
            (double)first->bytes / MIB, t->ways[way].name, o->ref_num);
}

void table_summary(FILE *out, const struct test *tests, int ntests)
{
    fprintf(out,
            "\nSummary of all tests:\n%-9s %10s %10s %10s %10s %10s %10s %10s %10s %10s %10s %13s",
            "Operation", "Max(MiB)", "Min(MiB)", "Mean(MiB)", "StdDev", "Max(OPs)", "Min(OPs)",
            "Mean(OPs)", "StdDev", "Mean(s)", "Stonewall(s)", "Stonewall(MiB)");
    fprintf(out,
            " Test# #Tasks tPN reps fPP reord reordoff reordrand seed segcnt %8s %8s %9s %5s "
            "RefNum\n",
            " blksiz", "xsize", "aggs(MiB)", "API");
    for (int i = 0; i < ntests; i++)
        for (int way = 0; way < tests[i].nways; way++) {
            if (tests[i].o.write)
                print_summary(out, &tests[i], way, 1);
            if (tests[i].o.read || tests[i].o.check_read)
                print_summary(out, &tests[i], way, 0);
        }
    print_now(out, "Finished");
}
