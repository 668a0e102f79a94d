/* Programs whose collective calls are watched. Every rank prints a line.
 *   yield_driver calls               every wrapped call: wrong results, calls seen
 *   yield_driver steps PATH INFO BYTES  barriers alone, and 150 or more while BYTES a rank are
 *                                    written behind them: milliseconds, milliseconds, how many,
 *                                    MiB a second, how many of them suffered (slow_barrier.c) */
#include <mpi.h>

#include "brigade/io.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EACH 10

static int rank, size;

static int wrong(const int *got, int n, int first, int step)
{
    for (int i = 0; i < n; i++)
        if (got[i] != first + i * step)
            return 1;
    return 0;
}

/* One of each; how many gave a wrong result. */
static int call_all(void)
{
    MPI_Comm c = MPI_COMM_WORLD;
    int one = rank, sum = size * (size - 1) / 2, got, bad = 0;
    int *all = calloc((size_t)size * 4, sizeof *all), *mine = all + size, *ones = mine + size,
        *at = ones + size;
    for (int i = 0; i < size; i++) {
        mine[i] = 100 * rank + i;
        ones[i] = 1;
        at[i] = i;
    }
    MPI_Request requests[2];
    bad += MPI_Barrier(c) != MPI_SUCCESS;
    got = rank == size - 1 ? 7 : 0;
    MPI_Bcast(&got, 1, MPI_INT, size - 1, c);
    bad += got != 7;
    MPI_Reduce(&one, &got, 1, MPI_INT, MPI_SUM, size - 1, c);
    bad += rank == size - 1 && got != sum;
    MPI_Allreduce(&one, &got, 1, MPI_INT, MPI_SUM, c);
    bad += got != sum;
    MPI_Scan(&one, &got, 1, MPI_INT, MPI_SUM, c);
    bad += got != rank * (rank + 1) / 2;
    MPI_Exscan(&one, &got, 1, MPI_INT, MPI_SUM, c);
    bad += rank && got != rank * (rank - 1) / 2;
    MPI_Reduce_scatter(mine, &got, ones, MPI_INT, MPI_SUM, c);
    bad += got != 100 * sum + size * rank;
    MPI_Reduce_scatter_block(mine, &got, 1, MPI_INT, MPI_SUM, c);
    bad += got != 100 * sum + size * rank;
    MPI_Gather(&one, 1, MPI_INT, all, 1, MPI_INT, size - 1, c);
    bad += rank == size - 1 && wrong(all, size, 0, 1);
    MPI_Scatter(mine, 1, MPI_INT, &got, 1, MPI_INT, size - 1, c);
    bad += got != 100 * (size - 1) + rank;
    MPI_Allgather(&one, 1, MPI_INT, all, 1, MPI_INT, c);
    bad += wrong(all, size, 0, 1);
    memset(all, 0, (size_t)size * sizeof *all);
    MPI_Allgatherv(&one, 1, MPI_INT, all, ones, at, MPI_INT, c);
    bad += wrong(all, size, 0, 1);
    MPI_Alltoall(mine, 1, MPI_INT, all, 1, MPI_INT, c);
    bad += wrong(all, size, rank, 100);
    memset(all, 0, (size_t)size * sizeof *all);
    MPI_Alltoallv(mine, ones, at, MPI_INT, all, ones, at, MPI_INT, c);
    bad += wrong(all, size, rank, 100);
    MPI_Iallreduce(&one, &got, 1, MPI_INT, MPI_SUM, c, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    bad += got != sum;
    MPI_Isend(&one, 1, MPI_INT, (rank + 1) % size, 0, c, &requests[0]);
    MPI_Irecv(&got, 1, MPI_INT, (rank + size - 1) % size, 0, c, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    bad += got != (rank + size - 1) % size;
    free(all);
    return bad;
}

static void calls(char *line, size_t room)
{
    struct {
        double calls, rest[6];
    } before = {0}, after = {0};
    void (*busy)(int);
    void (*sums)(void *);
    int bad = 0;
    *(void **)&busy = dlsym(RTLD_DEFAULT, "brg_pmpi_busy");
    *(void **)&sums = dlsym(RTLD_DEFAULT, "brg_pmpi_sums");
    for (int i = 0; i < EACH; i++)
        bad += call_all();
    if (sums) {
        sums(&before);
        busy(1);
    }
    for (int i = 0; i < EACH; i++)
        bad += call_all();
    if (sums) {
        sums(&after);
        busy(-1);
    }
    snprintf(line, room, "%d %d %g", rank, bad, after.calls - before.calls);
}

static void steps(char *line, size_t room, const char *path, const char *info, size_t bytes)
{
    enum {
        ALONE = 200,
        AT_LEAST = 150
    };
    struct brg_error err;
    brg_file *f;
    brg_request *request;
    char *buf = calloc(1, bytes);
    int done = 0, barriers = 0;
    double alone = MPI_Wtime(), within = 0, took = 0, began;
    for (int i = 0; i < ALONE; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    alone = (MPI_Wtime() - alone) / ALONE;
    int rc = brg_file_open(MPI_COMM_WORLD, path, BRG_WRITE | BRG_CREATE, info, &f, &err);
    began = MPI_Wtime();
    if (!rc)
        rc = brg_file_write(f, (uint64_t)rank * bytes, buf, bytes, &err);
    if (!rc)
        rc = brg_file_commit_start(f, &request, &err);
    while (!rc && (!done || barriers < AT_LEAST)) {
        double now = MPI_Wtime();
        MPI_Barrier(MPI_COMM_WORLD);
        within += MPI_Wtime() - now;
        if (++barriers % 10 == 0 && !done) {
            rc = brg_request_test(request, &done, &err);
            took = MPI_Wtime() - began;
        }
    }
    const long *suffered = dlsym(RTLD_DEFAULT, "barriers_that_suffered");
    snprintf(line, room, "%d %g %g %d %g %ld", rc, alone * 1e3, within / barriers * 1e3, barriers,
             (double)bytes / 1048576 / took, suffered ? *suffered : 0);
    brg_file_close(f, NULL);
    free(buf);
}

int main(int argc, char **argv)
{
    char line[200];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 5)
        calls(line, sizeof line);
    else
        steps(line, sizeof line, argv[2], argv[3], strtoull(argv[4], NULL, 10));
    strcat(line, "\n");
    if (write(1, line, strlen(line)) < 0)
        return 1;
    MPI_Finalize();
    return 0;
}
