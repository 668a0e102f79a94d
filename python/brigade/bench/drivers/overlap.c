/* Barriers (and allreduces) of a program before, while and after it writes a checkpoint.
 *
 *     overlap SCHEDULE FILE
 *
 * FILE is what is written, and removed after each turn. Each line of the schedule is a turn: NUMBER
 * MODE HINTS BYTES STEP BARRIERS DOUBLES AFTER. A turn: BARRIERS times a step (STEP microseconds of
 * work, of sleep if negative, a barrier and, unless DOUBLES is 0, an allreduce of so many); each
 * rank writes BYTES; steps again until the file is there, at least BARRIERS; and AFTER more. Modes:
 *   sync    brg_file_commit
 *   async   brg_file_commit_start; the request is asked every tenth step, or each long one
 *   plain   each rank writes a file of its own, FILE.RANK, and leaves the rest to the kernel
 *   fsync   the same in a thread, which then waits for fsync
 *   direct  the same past the page cache (O_DIRECT), and fsync
 * Rank 0 prints a line of JSON a turn; a call's time is the longest of any rank. A failure ends the
 * job: MARK and {"failed", "rank"}. */
#define _GNU_SOURCE
#include <mpi.h>

#include "brigade/io.h"

#include "companions.h"
#include "exchange.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH 4096
#define PIECE (1u << 20)
#define ALIGNED 4096u
#define LONG_US 5000 /* after a step of so much work the request is asked each time */

struct turn {
    int number, step_us, barriers, doubles, after;
    unsigned long long bytes;
    char mode[16], hints[512];
};

struct series {
    float *seconds, *at, *reduced; /* a barrier's time; when it ended; an allreduce's time */
    int n, room;
};

/* A write in a thread of its own. */
struct writer {
    pthread_t thread;
    const char *path, *buf;
    size_t bytes;
    int direct, rc, running;
    volatile int over;
};

static int rank;
static const char *file = "";

__attribute__((noreturn)) static void fail(const char *what, const char *why)
{
    printf(MARK "{\"rank\": %d, \"failed\": ", rank);
    char text[PATH + 1024];
    snprintf(text, sizeof text, "%s: %s", what, why);
    exchange_text(text);
    puts("}");
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

static void grow(struct series *series)
{
    float **const all[] = {&series->seconds, &series->at, &series->reduced};
    series->room = series->room ? 2 * series->room : 4096;
    for (int i = 0; i < 3; i++)
        if (!(*all[i] = realloc(*all[i], (size_t)series->room * sizeof **all[i])))
            fail("times of calls", strerror(ENOMEM));
}

static void step(struct series *series, const struct turn *turn, double since)
{
    static double given[4096], taken[4096];
    double begin = MPI_Wtime(), middle, end;
    if (turn->step_us < 0)
        usleep((useconds_t)-turn->step_us);
    while (MPI_Wtime() - begin < turn->step_us * 1e-6)
        ;
    begin = MPI_Wtime();
    MPI_Barrier(MPI_COMM_WORLD);
    end = middle = MPI_Wtime();
    if (turn->doubles) {
        MPI_Allreduce(given, taken, turn->doubles, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        end = MPI_Wtime();
    }
    if (series->n == series->room)
        grow(series);
    series->seconds[series->n] = (float)(middle - begin);
    series->reduced[series->n] = (float)(end - middle);
    series->at[series->n++] = (float)(middle - since);
}

static int write_whole(const char *path, const char *buf, size_t bytes, int flags, int *fd)
{
    *fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | flags, 0600);
    size_t done = 0;
    while (*fd >= 0 && done < bytes) {
        size_t left = bytes - done;
        ssize_t n = write(*fd, buf + done, flags & O_DIRECT && left > PIECE ? PIECE : left);
        if (n < 0)
            return -errno;
        done += (size_t)n;
    }
    return *fd < 0 ? -errno : 0;
}

static void *write_aside(void *context)
{
    struct writer *writer = context;
    int fd = -1;
    writer->rc =
        write_whole(writer->path, writer->buf, writer->bytes, writer->direct ? O_DIRECT : 0, &fd);
    if (!writer->rc && fsync(fd))
        writer->rc = -errno;
    if (fd >= 0)
        close(fd);
    writer->over = 1;
    return NULL;
}

static int aside(const struct turn *turn)
{
    return strcmp(turn->mode, "fsync") == 0 || strcmp(turn->mode, "direct") == 0;
}

/* The same on all ranks: whether every rank's thread has ended. */
static int all_over(const struct writer *writer)
{
    int over = writer->over, all;
    if (over && writer->rc)
        fail(writer->path, strerror(-writer->rc));
    MPI_Allreduce(&over, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return all;
}

/* Writes, and leaves *request or *fd to be finished. */
static void begin_write(const struct turn *turn, const char *path, const char *buf, brg_file **f,
                        brg_request **request, struct writer *writer, int *fd)
{
    struct brg_error err = {0};
    int rc;
    if (aside(turn)) {
        *writer = (struct writer){.path = path,
                                  .buf = buf,
                                  .bytes = turn->bytes,
                                  .direct = strcmp(turn->mode, "direct") == 0};
        if ((rc = pthread_create(&writer->thread, NULL, write_aside, writer)))
            fail("a thread", strerror(rc));
        writer->running = 1;
        return;
    }
    if (strcmp(turn->mode, "plain") == 0) {
        if ((rc = write_whole(path, buf, turn->bytes, 0, fd)))
            fail(path, strerror(-rc));
        return;
    }
    rc = brg_file_open(MPI_COMM_WORLD, path, BRG_WRITE | BRG_CREATE, turn->hints, f, &err);
    if (!rc)
        rc = brg_file_write(*f, (uint64_t)rank * turn->bytes, buf, turn->bytes, &err);
    if (!rc)
        rc = strcmp(turn->mode, "async") == 0 ? brg_file_commit_start(*f, request, &err)
                                              : brg_file_commit(*f, &err);
    if (rc)
        fail(turn->mode, err.text);
}

static void print_series(const char *name, const float *values, int n, double unit)
{
    printf(", \"%s\": [", name);
    for (int i = 0; i < n; i++)
        printf(i ? ",%.0f" : "%.0f", values[i] * unit);
    printf("]");
}

/* On rank 0, of all ranks'. */
static void longest(void *values, int n, MPI_Datatype type)
{
    MPI_Reduce(rank ? values : MPI_IN_PLACE, values, n, type, MPI_MAX, 0, MPI_COMM_WORLD);
}

/* One turn. */
static void take(const struct turn *turn, char *buf)
{
    static struct series before, within, after;
    struct writer writer = {0};
    struct brg_error err = {0};
    brg_file *f = NULL;
    brg_request *request = NULL;
    int fd = -1, done = 1;
    char path[PATH + 16];
    snprintf(path, sizeof path, "%s", file);
    int own = aside(turn) || strcmp(turn->mode, "plain") == 0;
    if (own)
        snprintf(path, sizeof path, "%s.%d", file, rank);
    before.n = within.n = after.n = 0;
    double start = MPI_Wtime();
    for (int i = 0; i < turn->barriers; i++)
        step(&before, turn, start);
    memset(buf, turn->number, turn->bytes);
    MPI_Barrier(MPI_COMM_WORLD);

    start = MPI_Wtime();
    begin_write(turn, path, buf, &f, &request, &writer, &fd);
    double times[2] = {MPI_Wtime() - start, MPI_Wtime() - start};
    if (request || writer.running)
        done = 0;
    while (!done || within.n < turn->barriers) {
        step(&within, turn, start);
        if (!done && (abs(turn->step_us) >= LONG_US || within.n % 10 == 0)) {
            if (!request)
                done = all_over(&writer);
            else if (brg_request_test(request, &done, &err))
                fail(turn->mode, err.text);
            times[1] = MPI_Wtime() - start;
        }
    }
    for (int i = 0; i < turn->after; i++)
        step(&after, turn, start);
    if (writer.running)
        pthread_join(writer.thread, NULL);

    /* What is left to the kernel must not disturb the next turn. */
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    if (own)
        unlink(path);
    if (f)
        brg_file_close(f, NULL);
    if (rank == 0 && f)
        companions_remove(path);
    usleep(200000);
    longest(before.seconds, before.n, MPI_FLOAT);
    longest(within.seconds, within.n, MPI_FLOAT);
    longest(after.seconds, after.n, MPI_FLOAT);
    longest(before.reduced, before.n, MPI_FLOAT);
    longest(within.reduced, within.n, MPI_FLOAT);
    longest(after.reduced, after.n, MPI_FLOAT);
    longest(times, 2, MPI_DOUBLE);
    if (rank == 0) {
        printf(MARK "{\"turn\": %d, \"returned\": %.6f, \"done\": %.6f", turn->number, times[0],
               times[1]);
        print_series("before_us", before.seconds, before.n, 1e6);
        print_series("within_us", within.seconds, within.n, 1e6);
        print_series("at_us", within.at, within.n, 1e6);
        print_series("after_us", after.seconds, after.n, 1e6);
        if (turn->doubles) {
            print_series("reduce_before_us", before.reduced, before.n, 1e6);
            print_series("reduce_within_us", within.reduced, within.n, 1e6);
            print_series("reduce_after_us", after.reduced, after.n, 1e6);
        }
        printf("}\n");
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    struct turn turn;
    int ranks, provided;
    unsigned long long room = 0;
    char *buf = NULL, *rest = NULL;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 3 || strlen(argv[2]) >= PATH)
        fail("overlap SCHEDULE FILE", argc < 3 ? "what is missing?" : strerror(ENAMETOOLONG));
    file = argv[2];
    char *schedule = exchange_schedule(argv[1]);
    if (!schedule)
        fail(argv[1], "cannot be read");
    if (rank == 0)
        printf(MARK "{\"ranks\": %d}\n", ranks);
    for (char *line = strtok_r(schedule, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (sscanf(line, "%d %15s %511s %llu %d %d %d %d", &turn.number, turn.mode, turn.hints,
                   &turn.bytes, &turn.step_us, &turn.barriers, &turn.doubles, &turn.after) != 8 ||
            turn.doubles < 0 || turn.doubles > 4096)
            fail("no turn", line);
        if (turn.bytes > room) {
            free(buf);
            room = (turn.bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
            if (!(buf = aligned_alloc(ALIGNED, room)))
                fail("a rank's bytes", strerror(ENOMEM));
        }
        take(&turn, buf);
    }
    free(schedule);
    free(buf);
    MPI_Finalize();
    return 0;
}
