/* The phases of a test, in IOR's order: write, check what was written, read, remove; for each
 * repetition, and in it for each back end, in an order of its own. */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ior.h"

#define ALIGNMENT 4096 /* of buffers: -B needs it */
#define SHOWN 4        /* ranks whose first wrong word is shown */

struct run {
    struct test *t;
    char *buf;
    double begin;
    int way, repetition;
    int64_t limit; /* transfers of a phase, or 0 */
    int64_t wrong;
    int wrong_here; /* in this iteration */
};

/* What a rank found, gathered by rank 0. */
struct verdict {
    struct wrong wrong;
    int as;
};

struct sample *sample_of(const struct test *t, int way, int repetition, int writing)
{
    return &t->samples[(way * t->o.repetitions + repetition) * 2 + writing];
}

static int in_time(const struct run *r)
{
    int late = r->t->o.minutes && now() - r->begin >= 60.0 * r->t->o.minutes;
    if (r->t->o.minutes)
        MPI_Bcast(&late, 1, MPI_INT, 0, r->t->comm);
    return !late;
}

static void prepare(const struct run *r, struct phase *p, int shift, int writing, char *path)
{
    struct test *t = r->t;
    int as = (t->rank + shift) % t->ranks;
    file_name(t, r->way, as, r->repetition, path);
    *p = (struct phase){.buf = r->buf, .limit = r->limit};
    p->target = (struct target){.t = t, .way = &t->ways[r->way], .path = path, .as = as};
    p->target.comm = t->o.own_file ? MPI_COMM_SELF : t->comm;
    p->target.writing = writing;
}

/* As IOR: what stat says is only compared; bandwidths are of the bytes that were moved. */
static void compare_size(const struct run *r, const struct phase *p, int64_t moved)
{
    const struct test *t = r->t;
    int64_t size = 0, expected = t->o.block * t->o.segments * t->ranks;
    char why[WHY];
    if (p->target.way->back->own_format)
        return;
    if ((t->o.own_file || t->rank == 0) && p->target.way->back->size(p->target.path, &size, why))
        fail("%s", why);
    MPI_Allreduce(MPI_IN_PLACE, &size, 1, MPI_INT64_T, MPI_SUM, t->comm);
    if (t->rank == 0 && (expected != moved || size != moved))
        warn("%lld bytes were expected, %lld were moved, and the file has %lld%s",
             (long long)expected, (long long)moved, (long long)size,
             t->o.deadline ? " (a deadline, -D)" : "");
}

static void keep_sample(const struct run *r, const struct phase *p)
{
    struct test *t = r->t;
    struct sample *s = sample_of(t, r->way, r->repetition, p->target.writing);
    double ends[STAMPS], latency = p->stamps[MOVE_STOP] - p->stamps[MOVE_START];
    for (int i = 0; i < STAMPS; i++)
        MPI_Reduce(&p->stamps[i], &ends[i], 1, MPI_DOUBLE, i % 2 ? MPI_MAX : MPI_MIN, 0, t->comm);
    latency = p->transfers ? latency / (double)p->transfers : 1e300;
    *s = (struct sample){.writing = p->target.writing, .repetition = r->repetition};
    MPI_Reduce(&latency, &s->latency, 1, MPI_DOUBLE, MPI_MIN, 0, t->comm);
    MPI_Reduce(&p->wall_bytes, &s->wall_bytes, 1, MPI_DOUBLE, MPI_SUM, 0, t->comm);
    MPI_Allreduce(&p->moved, &s->bytes, 1, MPI_INT64_T, MPI_SUM, t->comm);
    compare_size(r, p, s->bytes);
    if (t->rank != 0)
        return;
    s->open = ends[OPEN_STOP] - ends[OPEN_START];
    s->move = ends[MOVE_STOP] - ends[MOVE_START];
    s->close = ends[CLOSE_STOP] - ends[CLOSE_START];
    s->wall = p->wall;
    s->wall_bytes /= t->ranks;
    s->total = ends[CLOSE_STOP] - ends[OPEN_START];
    report_sample(t, r->way, s);
}

static void judge(struct run *r, const struct phase *p)
{
    const struct test *t = r->t;
    struct verdict mine, *all = NULL;
    int64_t words = p->wrong.words, compared = p->moved / 8;
    memset(&mine, 0, sizeof mine);
    mine.wrong = p->wrong;
    mine.as = p->target.as;
    MPI_Allreduce(MPI_IN_PLACE, &words, 1, MPI_INT64_T, MPI_SUM, t->comm);
    if (words == 0)
        return;
    MPI_Allreduce(MPI_IN_PLACE, &compared, 1, MPI_INT64_T, MPI_SUM, t->comm);
    r->wrong += words;
    r->wrong_here = 1;
    if (t->rank == 0 && !(all = malloc((size_t)t->ranks * sizeof *all)))
        fail("no memory for what ranks found");
    MPI_Gather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, 0, t->comm);
    if (t->rank != 0)
        return;
    warn("%lld of %lld words are wrong", (long long)words, (long long)compared);
    for (int rank = 0, shown = 0; rank < t->ranks && shown < SHOWN; rank++)
        if (all[rank].wrong.words) {
            report_wrong(t, r->way, r->repetition, rank, all[rank].as, &all[rank].wrong);
            shown++;
        }
    free(all);
}

/* For a later run. Without a wear-out, which test_check demands, tasks would have different ones; of
 * -z one may have had nothing to do. */
static void store_limit(const struct test *t, int64_t limit)
{
    int64_t most = 0;
    MPI_Reduce(&limit, &most, 1, MPI_INT64_T, MPI_MAX, 0, t->comm);
    if (t->rank != 0)
        return;
    FILE *file = fopen(t->o.status_file, "w");
    if (!file || fprintf(file, "%lld", (long long)most) < 0 || fclose(file) != 0)
        fail("stoneWallingStatusFile: %s: %s", t->o.status_file, strerror(errno));
}

/* With a deadline, what is read later is what was written: of all ranks if others' is read. */
static void limit_reading(struct run *r, const struct phase *p)
{
    const struct test *t = r->t;
    if (!t->o.deadline)
        return;
    r->limit = p->transfers;
    if (t->o.reorder || t->o.reorder_random)
        MPI_Allreduce(MPI_IN_PLACE, &r->limit, 1, MPI_INT64_T, MPI_MIN, t->comm);
    if (*t->o.status_file)
        store_limit(t, r->limit);
}

static void read_limit(struct run *r)
{
    const struct test *t = r->t;
    long long transfers = -1;
    if (!*t->o.status_file || t->o.write)
        return;
    FILE *file = t->rank == 0 ? fopen(t->o.status_file, "r") : NULL;
    if (file) {
        if (fscanf(file, "%lld", &transfers) != 1)
            transfers = -1;
        fclose(file);
    }
    MPI_Bcast(&transfers, 1, MPI_LONG_LONG, 0, t->comm);
    if (transfers < 0)
        fail("%s: no number of transfers", t->o.status_file);
    r->limit = transfers;
}

static void write_file(struct run *r)
{
    struct test *t = r->t;
    struct phase p;
    char path[PATH_ROOM];
    prepare(r, &p, 0, 1, path);
    sleep((unsigned)t->o.delay);
    if (!t->o.use_existing)
        file_remove(t, r->way, r->repetition);
    if (t->o.unique_dir)
        file_make_folder(path);
    if (!t->o.keep)
        file_watch(path);
    MPI_Barrier(t->comm);
    phase_run(&p);
    MPI_Barrier(t->comm);
    keep_sample(r, &p);
    limit_reading(r, &p);
}

static void check_written(struct run *r)
{
    struct phase p;
    char path[PATH_ROOM];
    MPI_Barrier(r->t->comm);
    prepare(r, &p, check_shift(r->t), 0, path);
    p.checking = 1;
    phase_run(&p);
    judge(r, &p);
}

static void read_file(struct run *r)
{
    struct test *t = r->t;
    struct phase p;
    char path[PATH_ROOM];
    read_limit(r);
    prepare(r, &p, read_shift(t, r->repetition), 0, path);
    p.checking = t->o.check_read;
    sleep((unsigned)t->o.delay);
    phase_run(&p);
    keep_sample(r, &p);
    if (p.checking)
        judge(r, &p);
}

static void remove_files(const struct run *r)
{
    const struct test *t = r->t;
    MPI_Barrier(t->comm); /* others may still read */
    if (t->o.keep || (r->wrong_here && t->o.keep_wrong)) {
        file_watch(NULL);
        return;
    }
    double begin = now();
    file_remove(t, r->way, r->repetition);
    MPI_Barrier(t->comm);
    if (t->rank == 0)
        report_removed(t, r->way, r->repetition, now() - begin);
}

/* Without -G every iteration of every test has a signature of its own, so that what an earlier one
 * left there is not taken for right. */
static void sign(struct run *r)
{
    struct test *t = r->t;
    t->signature = t->o.signature;
    if (!t->signature) {
        uint64_t sum = ((uint64_t)time(NULL) * 1000003 + (uint64_t)t->id) * 1000003;
        t->signature = (int64_t)(sum + (uint64_t)(r->repetition * MAX_WAYS + r->way));
        MPI_Bcast(&t->signature, 1, MPI_INT64_T, 0, t->comm);
    }
}

static void iterate(struct run *r)
{
    const struct options *o = &r->t->o;
    sign(r);
    r->limit = o->wear_out_transfers;
    r->wrong_here = 0;
    if (o->write && in_time(r))
        write_file(r);
    if (o->check_write && in_time(r))
        check_written(r);
    if ((o->read || o->check_read) && !(o->quit && r->wrong_here) && in_time(r))
        read_file(r);
    remove_files(r);
}

/* The i-th of a repetition's back ends: rotated, so that each comes first as often, and turned
 * round every other time, so that each follows either neighbour. */
static int turn(const struct test *t, int repetition, int i)
{
    int place = (i + repetition / 2) % t->nways;
    return repetition % 2 ? t->nways - 1 - place : place;
}

/* -M: a program's own memory, of which the page cache then has less. */
static char *occupy(const struct test *t)
{
    const char *text = t->o.memory;
    char *end;
    if (!*text)
        return NULL;
    double bytes = strtod(text, &end);
    const char *unit = *end ? strchr("kmgt", tolower(*end)) : NULL;
    if (*end == '%')
        bytes *= (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / 100;
    else if (unit)
        bytes *= (double)(1LL << 10 * (unit - "kmgt" + 1));
    else if (*end)
        fail("-M: '%s' is no size, such as 2g or 75%%", text);
    size_t share = (size_t)(bytes / t->on_node0) + 1;
    char *held = malloc(share);
    if (!held)
        fail("-M: no %zu bytes for each task", share);
    memset(held, 1, share);
    return held;
}

int64_t test_run(struct test *t)
{
    struct run r = {.t = t};
    char *held = occupy(t);
    if (posix_memalign((void **)&r.buf, ALIGNMENT, (size_t)t->o.transfer))
        fail("no memory for a transfer of %lld bytes (-t)", (long long)t->o.transfer);
    t->samples = calloc((size_t)(t->nways * t->o.repetitions) * 2, sizeof *t->samples);
    if (!t->samples)
        fail("no memory for the results of %d repetitions (-i)", t->o.repetitions);
    if (t->rank == 0)
        report_test(t);
    r.begin = now();
    for (r.repetition = 0; r.repetition < t->o.repetitions; r.repetition++)
        for (int i = 0; i < t->nways && !(t->o.quit && r.wrong); i++) {
            r.way = turn(t, r.repetition, i);
            iterate(&r);
        }
    free(r.buf);
    free(held);
    return r.wrong;
}
