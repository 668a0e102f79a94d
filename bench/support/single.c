/* Records moved one by one: each by an independent call of its own.
 *
 *     single FILE HOW BYTES COUNT ROUNDS
 *
 * Each rank has COUNT records of BYTES bytes. HOW says where they lie and how they are asked for:
 *
 *     at       one after another, a part of the file for each rank; by explicit offsets
 *     pointer  the same, by the individual pointer, from a view's displacement on
 *     doubles  as at, and memory is MPI_DOUBLE
 *     rows     as at, by a datatype that the program made: one row
 *     turns    records of all ranks in turns, by a view, and the individual pointer
 *
 * Each round opens the file, writes all, closes it, and the same again to read; what is read is
 * compared. Rank 0 prints a line of JSON a round: seconds of the calls alone, of the slowest rank,
 * and of all ranks the processor's time, the mean. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static int rank, ranks;
static const char *path, *how;
static long bytes, count;
static char *memory;

struct took {
    double wall, cpu;
};

static double cpu_seconds(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static int is(const char *name)
{
    return strcmp(how, name) == 0;
}

static void fill(char *at, int round)
{
    for (long i = 0; i < bytes * count; i++)
        at[i] = (char)(i * 7 + i / 251 + rank * 31 + round * 13);
}

/* Memory's datatype, how many of it a record is, and the file's view. */
static MPI_Datatype type_of_memory(int *n)
{
    MPI_Datatype row;
    *n = (int)bytes;
    if (is("doubles")) {
        *n = (int)(bytes / (long)sizeof(double));
        return MPI_DOUBLE;
    }
    if (!is("rows"))
        return MPI_BYTE;
    *n = 1;
    MPI_Type_contiguous((int)bytes, MPI_BYTE, &row);
    MPI_Type_commit(&row);
    return row;
}

static void set_view(MPI_File f)
{
    MPI_Datatype record, tile;
    if (is("pointer"))
        MPI_File_set_view(f, rank * bytes * count, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    if (!is("turns"))
        return;
    MPI_Type_contiguous((int)bytes, MPI_BYTE, &record);
    MPI_Type_create_resized(record, 0, bytes * ranks, &tile);
    MPI_Type_commit(&tile);
    MPI_File_set_view(f, rank * bytes, MPI_BYTE, tile, "native", MPI_INFO_NULL);
    MPI_Type_free(&tile);
    MPI_Type_free(&record);
}

static void move(MPI_File f, int writes, MPI_Datatype type, int n)
{
    int by_pointer = is("pointer") || is("turns");
    MPI_Offset at = rank * bytes * count;
    char *record = memory;
    for (long i = 0; i < count; i++, record += bytes, at += bytes) {
        if (by_pointer && writes)
            MPI_File_write(f, record, n, type, MPI_STATUS_IGNORE);
        else if (by_pointer)
            MPI_File_read(f, record, n, type, MPI_STATUS_IGNORE);
        else if (writes)
            MPI_File_write_at(f, at, record, n, type, MPI_STATUS_IGNORE);
        else
            MPI_File_read_at(f, at, record, n, type, MPI_STATUS_IGNORE);
    }
}

static struct took pass(int writes)
{
    MPI_File f;
    int n, mode = writes ? MPI_MODE_CREATE | MPI_MODE_WRONLY : MPI_MODE_RDONLY;
    MPI_Datatype type = type_of_memory(&n);
    if (MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &f))
        MPI_Abort(MPI_COMM_WORLD, 1);
    set_view(f);
    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime(), began_cpu = cpu_seconds();
    move(f, writes, type, n);
    struct took mine = {MPI_Wtime() - began, cpu_seconds() - began_cpu}, all;
    MPI_File_close(&f);
    MPI_Allreduce(&mine.wall, &all.wall, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(&mine.cpu, &all.cpu, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    all.cpu /= ranks;
    if (is("rows"))
        MPI_Type_free(&type);
    return all;
}

static void compare(int round)
{
    char *expected = malloc((size_t)(bytes * count));
    fill(expected, round);
    if (memcmp(expected, memory, (size_t)(bytes * count))) {
        fprintf(stderr, "rank %d: what is read is not what was written\n", rank);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    free(expected);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 6)
        MPI_Abort(MPI_COMM_WORLD, 2);
    path = argv[1];
    how = argv[2];
    bytes = atol(argv[3]);
    count = atol(argv[4]);
    memory = malloc((size_t)(bytes * count));
    for (int round = 0; round < atoi(argv[5]); round++) {
        fill(memory, round);
        struct took wrote = pass(1);
        memset(memory, 0, (size_t)(bytes * count));
        struct took got = pass(0);
        compare(round);
        if (rank == 0)
            printf("{\"round\": %d, \"write\": %.6f, \"read\": %.6f, \"write_cpu\": %.6f, "
                   "\"read_cpu\": %.6f}\n",
                   round, wrote.wall, got.wall, wrote.cpu, got.cpu);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        unlink(path);
    free(memory);
    MPI_Finalize();
    return 0;
}
