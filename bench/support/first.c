/* The first files of a job: what a program that writes one checkpoint waits for.
 *
 *     first PREFIX EDGE ELEMENT FILES [threads]
 *
 * Each rank has its block of a 4-D lattice of EDGE points a side and ELEMENT bytes a point. Files
 * PREFIX.0 ... are written, one after another, each by one collective call with a view, then read,
 * compared, and removed. Rank 0 prints a line of JSON for each: seconds from a barrier until the
 * last rank had opened it, had its view, had moved its block, and had closed it.
 * `threads`: MPI is told that several may call it at a time, as mpi4py tells it. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    OPENED,
    VIEWED,
    MOVED,
    CLOSED,
    N_STEPS
};

static int rank, ranks;
static const char *prefix;
static char *block;
static long bytes;
static MPI_Datatype point, part;

static void make_types(int edge, int element)
{
    int dims[4] = {0, 0, 0, 0}, whole[4], size[4], start[4], left = rank;
    MPI_Dims_create(ranks, 4, dims);
    bytes = element;
    for (int i = 3; i >= 0; i--) {
        whole[i] = edge;
        size[i] = edge / dims[i];
        start[i] = left % dims[i] * size[i];
        left /= dims[i];
        bytes *= size[i];
    }
    MPI_Type_contiguous(element, MPI_BYTE, &point);
    MPI_Type_create_subarray(4, whole, size, start, MPI_ORDER_C, point, &part);
    MPI_Type_commit(&point);
    MPI_Type_commit(&part);
}

static void fill(char *at, int file)
{
    for (long i = 0; i < bytes; i++)
        at[i] = (char)(i * 7 + i / 251 + rank * 31 + file);
}

static void pass(int file, int writes)
{
    char path[4096];
    double at[N_STEPS], last[N_STEPS];
    int mode = writes ? MPI_MODE_CREATE | MPI_MODE_WRONLY : MPI_MODE_RDONLY;
    long count = bytes / (long)sizeof(int);
    MPI_File f;
    snprintf(path, sizeof path, "%s.%d", prefix, file);
    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime();
    if (MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &f))
        MPI_Abort(MPI_COMM_WORLD, 1);
    at[OPENED] = MPI_Wtime() - began;
    MPI_File_set_view(f, 0, point, part, "native", MPI_INFO_NULL);
    at[VIEWED] = MPI_Wtime() - began;
    if (writes)
        MPI_File_write_all(f, block, (int)count, MPI_INT, MPI_STATUS_IGNORE);
    else
        MPI_File_read_all(f, block, (int)count, MPI_INT, MPI_STATUS_IGNORE);
    at[MOVED] = MPI_Wtime() - began;
    MPI_File_close(&f);
    at[CLOSED] = MPI_Wtime() - began;
    MPI_Reduce(at, last, N_STEPS, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf(
            "{\"file\": %d, \"way\": \"%s\", \"opened\": %.6f, \"viewed\": %.6f, \"moved\": %.6f, "
            "\"closed\": %.6f}\n",
            file, writes ? "write" : "read", last[OPENED], last[VIEWED], last[MOVED], last[CLOSED]);
}

static void compare(int file)
{
    char *expected = malloc((size_t)bytes);
    fill(expected, file);
    if (memcmp(expected, block, (size_t)bytes)) {
        fprintf(stderr, "rank %d: file %d is not what was written\n", rank, file);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    free(expected);
}

int main(int argc, char **argv)
{
    int threads = argc == 6 && strcmp(argv[5], "threads") == 0, provided;
    int level = threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, level, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 5 + threads || provided < level)
        MPI_Abort(MPI_COMM_WORLD, 2);
    prefix = argv[1];
    int files = atoi(argv[4]);
    make_types(atoi(argv[2]), atoi(argv[3]));
    block = malloc((size_t)bytes);
    for (int i = 0; i < files; i++) {
        fill(block, i);
        pass(i, 1);
    }
    for (int i = 0; i < files; i++) {
        memset(block, 0, (size_t)bytes);
        pass(i, 0);
        compare(i);
        char path[4096];
        snprintf(path, sizeof path, "%s.%d", prefix, i);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
            unlink(path);
    }
    free(block);
    MPI_Finalize();
    return 0;
}
