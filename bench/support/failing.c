/* A program that computes and checkpoints, and is meant to be killed.
 *
 *     failing PATH WAY STEPS EVERY LOOPS BYTES
 *
 * Each of STEPS steps is LOOPS rounds of arithmetic (or, if negative, so many microseconds of
 * sleep, as if the work were done elsewhere) and an allreduce. After each EVERY steps all ranks
 * write BYTES each, and how many steps are done, through libbrigade_io:
 *   sync     the program waits for brg_file_commit
 *   partial  it waits for the copy to the file's buffer; the request is asked each step, and waited
 *            for before the next checkpoint
 *   none     no checkpoint
 * It goes on from the checkpoint that is at PATH. Rank 0 prints one line of JSON an event, with the
 * seconds of CLOCK_MONOTONIC, and every rank its process number first. */
#include <mpi.h>

#include "brigade/io.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int rank, ranks;
static volatile double sink;
static const char *path;
static char *buf;
static size_t bytes;

static struct {
    brg_file *f;
    brg_request *request;
    double begin;
} way;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void say(const char *what, double seconds, long value)
{
    if (rank == 0) {
        printf("{\"event\": \"%s\", \"at\": %.6f, \"seconds\": %.6f, \"value\": %ld}\n", what,
               now(), seconds, value);
        fflush(stdout);
    }
}

static void check(int rc, const struct brg_error *err)
{
    if (rc) {
        fprintf(stderr, "rank %d: %s\n", rank, err->text);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void step(long loops)
{
    double x = 1.0 + rank, sum;
    if (loops < 0)
        usleep((useconds_t)-loops);
    for (long i = 0; i < loops; i++)
        x = x * 0.999999 + 1.0 / (double)(i + 1);
    MPI_Allreduce(&x, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    sink = sum;
}

/* Whether the last checkpoint is on shared storage; waits for it if asked to. */
static int arrived(int wait)
{
    struct brg_error err;
    int done = 0;
    if (!way.request)
        return 1;
    check(wait ? brg_request_wait(way.request, &err) : brg_request_test(way.request, &done, &err),
          &err);
    if (!wait && !done)
        return 0;
    check(brg_file_close(way.f, &err), &err);
    way.request = NULL;
    say("arrived", now() - way.begin, 0);
    return 1;
}

static void checkpoint(long done, int behind, const char *hints)
{
    struct brg_error err;
    double begin = now();
    arrived(1);
    double waited = now() - begin;
    begin = now();
    memcpy(buf, &done, sizeof done);
    check(brg_file_open(MPI_COMM_WORLD, path, BRG_WRITE | BRG_CREATE, hints, &way.f, &err), &err);
    check(brg_file_write(way.f, (uint64_t)rank * bytes, buf, bytes, &err), &err);
    if (behind)
        check(brg_file_commit_start(way.f, &way.request, &err), &err);
    else {
        check(brg_file_commit(way.f, &err), &err);
        check(brg_file_close(way.f, &err), &err);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    way.begin = now();
    say("waited", waited, 0);
    say("checkpoint", way.begin - begin, done);
}

/* Steps that the checkpoint at `path` holds; 0 where there is none. */
static long restored(void)
{
    struct brg_error err;
    brg_file *f;
    long done = 0;
    int rc = brg_file_open(MPI_COMM_WORLD, path, BRG_READ, NULL, &f, &err);
    if (rc == -ENOENT)
        return 0;
    check(rc, &err);
    check(brg_file_read(f, (uint64_t)rank * bytes, buf, bytes, &err), &err);
    memcpy(&done, buf, sizeof done);
    check(brg_file_close(f, &err), &err);
    return done;
}

int main(int argc, char **argv)
{
    if (argc != 7)
        return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    path = argv[1];
    int behind = strcmp(argv[2], "partial") == 0, none = strcmp(argv[2], "none") == 0;
    long steps = atol(argv[3]), every = atol(argv[4]), loops = atol(argv[5]);
    bytes = (size_t)atol(argv[6]);
    char hints[64];
    snprintf(hints, sizeof hints, "async=yes:buffer=%zu:slowdown=1000", bytes + (8u << 20));
    buf = malloc(bytes);
    memset(buf, rank + 1, bytes);
    long done = restored();
    printf("{\"event\": \"pid\", \"pid\": %d, \"rank\": %d}\n", (int)getpid(), rank);
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    say("begin", 0, done);
    double begin = now();
    int on_way = 0;
    long of_kind = 0;
    while (done < steps) {
        step(loops);
        done++;
        of_kind++;
        int still = way.request && !arrived(0);
        if (still != on_way || done % every == 0) { /* steps of one kind: beside a write, or not */
            say(on_way ? "slowed" : "steps", now() - begin, of_kind);
            begin = now(), of_kind = 0;
        }
        on_way = still;
        if (done % every == 0 && !none) {
            checkpoint(done, behind, behind ? hints : NULL);
            on_way = behind;
            begin = now();
        }
    }
    begin = now();
    arrived(1);
    say("end", now() - begin, done);
    free(buf);
    MPI_Finalize();
    return 0;
}
