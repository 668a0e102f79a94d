/* Heat in a plate, whose left edge is hot: each rank holds some of the rows. It goes on where its
 * checkpoint stopped, on any number of ranks that have a row each.
 *
 *     mpirun -n 4 ./heat heat.ckpt 50; mpirun -n 2 ./heat heat.ckpt 50
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <brigade/io.h>

#define N 64

static double u[N + 2][N], next[N + 2][N]; /* rows 0 and n + 1 belong to the neighbours */
static int rank, ranks;

static void stop_if(int code, const struct brg_error *err)
{
    if (code == 0)
        return;
    if (rank == 0)
        fprintf(stderr, "rank %d, %s: %s\n", err->rank, err->path, err->text);
    MPI_Finalize(); /* all ranks are here: a failure is everybody's */
    exit(1);
}

static void step(int n)
{
    int up = rank ? rank - 1 : MPI_PROC_NULL, down = rank < ranks - 1 ? rank + 1 : MPI_PROC_NULL;
    MPI_Sendrecv(u[1], N, MPI_DOUBLE, up, 0, u[n + 1], N, MPI_DOUBLE, down, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(u[n], N, MPI_DOUBLE, down, 0, u[0], N, MPI_DOUBLE, up, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (int i = 1; i <= n; i++)
        for (int j = 1; j < N - 1; j++)
            next[i][j] = 0.25 * (u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1]);
    for (int i = 1; i <= n; i++)
        memcpy(&u[i][1], &next[i][1], (N - 2) * sizeof u[i][1]);
}

int main(int argc, char **argv)
{
    struct brg_error err;
    brg_file *f;
    int64_t done = 0, steps = argc > 2 ? atoll(argv[2]) : 50;
    const char *path = argc > 1 ? argv[1] : "heat.ckpt";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    uint64_t first = (uint64_t)N * rank / ranks, n = (uint64_t)N * (rank + 1) / ranks - first;
    uint64_t shape[] = {N, N}, start[] = {first, 0}, count[] = {n, N};

    int code = brg_file_open(MPI_COMM_WORLD, path, BRG_READ, NULL, &f, &err);
    if (code == 0) {
        brg_type type;
        size_t one;
        const void *value;
        stop_if(brg_file_read_array(f, "u", start, count, NULL, u[1], &err), &err);
        stop_if(brg_file_get_attribute(f, NULL, "step", &type, &one, &value, &err), &err);
        done = *(const int64_t *)value;
        stop_if(brg_file_close(f, &err), &err);
    } else if (code == -2) { /* ENOENT: there is none yet */
        for (uint64_t i = 1; i <= n; i++)
            u[i][0] = 100;
    } else
        stop_if(code, &err);

    for (int64_t i = 0; i < steps; i++)
        step((int)n);
    done += steps;

    stop_if(brg_file_open(MPI_COMM_WORLD, path, BRG_WRITE | BRG_CREATE, NULL, &f, &err), &err);
    code = brg_file_write_array(f, "u", BRG_FLOAT64, 2, shape, start, count, NULL, u[1], &err);
    stop_if(code, &err);
    stop_if(brg_file_set_attribute(f, NULL, "step", BRG_INT64, 1, &done, &err), &err);
    stop_if(brg_file_commit(f, &err), &err); /* until here, the old checkpoint is there */
    stop_if(brg_file_close(f, &err), &err);
    if (rank == 0)
        printf("%lld steps in %s\n", (long long)done, path);
    return MPI_Finalize();
}
