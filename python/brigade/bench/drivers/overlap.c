/* Barriers of a program before, while and after it writes a checkpoint.
 *
 *     overlap SCHEDULE
 *
 * Each line of the schedule is a turn: NUMBER MODE HINTS BYTES STEP BARRIERS PATH. A turn: BARRIERS
 * times a step (STEP microseconds of work, then a barrier); each rank writes BYTES; steps again,
 * until the file is there, at least BARRIERS. Modes:
 *   sync    brg_file_commit
 *   async   brg_file_commit_start; the request is asked every tenth step
 *   plain   each rank writes a file of its own and leaves the rest to the kernel
 * Rank 0 prints a line of JSON a turn; a barrier's time is the longest of any rank. */
#include <mpi.h>

#include "brigade/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH 1024
#define MOST 50000 /* steps of a turn */

struct turn {
    int number, step_us, barriers;
    unsigned long long bytes;
    char mode[16], hints[512], path[PATH];
};

struct series {
    float seconds[MOST], at[MOST]; /* a barrier's time; when it ended */
    int n;
};

static int rank;

static void step(struct series *series, int step_us, double since)
{
    double begin = MPI_Wtime();
    while (MPI_Wtime() - begin < step_us * 1e-6)
        ;
    begin = MPI_Wtime();
    MPI_Barrier(MPI_COMM_WORLD);
    double end = MPI_Wtime();
    if (series->n < MOST) {
        series->seconds[series->n] = (float)(end - begin);
        series->at[series->n++] = (float)(end - since);
    }
}

static int write_plain(const char *path, const char *buf, size_t bytes, int *fd)
{
    *fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    size_t done = 0;
    while (*fd >= 0 && done < bytes) {
        ssize_t n = write(*fd, buf + done, bytes - done);
        if (n < 0)
            return -errno;
        done += (size_t)n;
    }
    return *fd < 0 ? -errno : 0;
}

/* Writes, and leaves *request or *fd to be finished. */
static int begin_write(const struct turn *turn, const char *path, const char *buf, brg_file **f,
                       brg_request **request, int *fd, struct brg_error *err)
{
    if (strcmp(turn->mode, "plain") == 0)
        return write_plain(path, buf, turn->bytes, fd);
    int rc = brg_file_open(MPI_COMM_WORLD, path, BRG_WRITE | BRG_CREATE, turn->hints, f, err);
    if (!rc)
        rc = brg_file_write(*f, (uint64_t)rank * turn->bytes, buf, turn->bytes, err);
    if (!rc)
        rc = strcmp(turn->mode, "async") == 0 ? brg_file_commit_start(*f, request, err)
                                              : brg_file_commit(*f, err);
    return rc;
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

/* One turn. 0, or a failure, which has been said. */
static int take(const struct turn *turn, char *buf)
{
    static struct series before, within;
    struct brg_error err = {.text = "it cannot write"};
    brg_file *f = NULL;
    brg_request *request = NULL;
    int fd = -1, done = 1;
    char path[PATH + 16];
    snprintf(path, sizeof path, "%s", turn->path);
    if (strcmp(turn->mode, "plain") == 0)
        snprintf(path, sizeof path, "%s.%d", turn->path, rank);
    before.n = within.n = 0;
    double start = MPI_Wtime();
    for (int i = 0; i < turn->barriers; i++)
        step(&before, turn->step_us, start);
    memset(buf, turn->number, turn->bytes);
    MPI_Barrier(MPI_COMM_WORLD);

    start = MPI_Wtime();
    int rc = begin_write(turn, path, buf, &f, &request, &fd, &err);
    double times[2] = {MPI_Wtime() - start, MPI_Wtime() - start};
    if (request)
        done = 0;
    while (!rc && (!done || within.n < turn->barriers)) {
        step(&within, turn->step_us, start);
        if (!done && within.n % 10 == 0) {
            rc = brg_request_test(request, &done, &err);
            times[1] = MPI_Wtime() - start;
        }
    }
    if (rc) {
        printf(MARK "{\"failed\": \"%s: error %d\", \"rank\": %d}\n", turn->mode, -rc, rank);
        fflush(stdout);
    }

    /* What is left to the kernel must not disturb the next turn. */
    if (fd >= 0) {
        fsync(fd);
        close(fd);
        unlink(path);
    }
    if (f)
        brg_file_close(f, NULL);
    if (rank == 0 && f) {
        unlink(path);
        strcat(path, ".sums");
        unlink(path);
    }
    usleep(200000);
    longest(before.seconds, before.n, MPI_FLOAT);
    longest(within.seconds, within.n, MPI_FLOAT);
    longest(times, 2, MPI_DOUBLE);
    if (rank == 0 && !rc) {
        printf(MARK "{\"turn\": %d, \"returned\": %.6f, \"done\": %.6f", turn->number, times[0],
               times[1]);
        print_series("before_us", before.seconds, before.n, 1e6);
        print_series("within_us", within.seconds, within.n, 1e6);
        print_series("at_us", within.at, within.n, 1e6);
        printf("}\n");
        fflush(stdout);
    }
    return rc;
}

int main(int argc, char **argv)
{
    struct turn turn;
    int ranks, rc = 0;
    unsigned long long room = 0;
    char line[2048], *buf = NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    FILE *schedule = argc > 1 ? fopen(argv[1], "r") : NULL;
    if (rank == 0)
        printf(MARK "{\"ranks\": %d}\n", ranks);
    while (!rc && schedule && fgets(line, sizeof line, schedule)) {
        if (sscanf(line, "%d %15s %511s %llu %d %d %1023s", &turn.number, turn.mode, turn.hints,
                   &turn.bytes, &turn.step_us, &turn.barriers, turn.path) != 7)
            break;
        if (turn.bytes > room)
            buf = realloc(buf, room = turn.bytes);
        rc = take(&turn, buf);
    }
    free(buf);
    if (rc)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Finalize();
    return schedule == NULL;
}
