/* Linked with libbrigade_mpiio: FILE. Each rank writes a block, and reads all back; where MPI has
 * calls for large counts (HAVE_LARGE), by all forms of those too, the reading one with a count that
 * no int holds. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EACH 1000
#define VAST INT64_C(3000000001)

static int rank, size;
static char mine[EACH];

static void expect(const char *what, long long want, long long got)
{
    if (want != got)
        printf("WRONG rank %d: %s is %lld, not %lld\n", rank, what, got, want);
}

static void look(const char *call, const char *all)
{
    for (int i = 0; i < EACH * size; i++)
        if (all[i] != (char)(i / EACH * 31 + i % EACH)) {
            expect(call, -1, i);
            return;
        }
}

static void plain_calls(MPI_File file, char *all)
{
    MPI_File_write_at_all(file, (MPI_Offset)rank * EACH, mine, EACH, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_read_at_all(file, 0, all, EACH * size, MPI_BYTE, MPI_STATUS_IGNORE);
    look("read_at_all", all);
}

#ifdef HAVE_LARGE
static void expect_count(const char *call, long long want, MPI_Status *status)
{
    MPI_Count got;
    MPI_Get_elements_x(status, MPI_BYTE, &got);
    expect(call, want, got);
}

/* Each of a rank's own two calls reads two runs, of rank 0's block. */
static void calls_alone(MPI_File file, char *all)
{
    MPI_Datatype two;
    MPI_Status status;
    MPI_Type_vector(2, 100, 200, MPI_BYTE, &two);
    MPI_Type_commit(&two);
    MPI_File_set_view(file, 0, MPI_BYTE, two, "native", MPI_INFO_NULL);
    MPI_File_read_at_c(file, 50, all, 100, MPI_BYTE, &status);
    MPI_File_read_c(file, all + 100, 200, MPI_BYTE, &status);
    expect("read_at_c", 0, rank == 0 && memcmp(all + 50, mine + 200, 50));
    expect("read_c", 0, rank == 0 && memcmp(all + 200, mine + 200, 100));
    expect_count("read_c", 200, &status);
    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    MPI_Type_free(&two);
}

static void large_calls(MPI_File file, char *all)
{
    MPI_Status status;
    MPI_Offset at = (MPI_Offset)rank * EACH;
    MPI_File_seek(file, at, MPI_SEEK_SET);
    MPI_File_write_all_c(file, mine, EACH / 2, MPI_BYTE, &status);
    expect_count("write_all_c", EACH / 2, &status);
    MPI_File_write_all_begin_c(file, mine + EACH / 2, EACH / 2, MPI_BYTE);
    MPI_File_write_all_end(file, mine + EACH / 2, &status);
    expect_count("write_all_begin_c", EACH / 2, &status);
    MPI_File_seek(file, 0, MPI_SEEK_SET);
    MPI_File_read_all_c(file, all, EACH * size, MPI_BYTE, &status);
    look("read_all_c", all);
    MPI_File_write_at_all_c(file, at, mine, EACH, MPI_BYTE, &status);
    expect_count("write_at_all_c", EACH, &status);
    MPI_File_write_at_all_begin_c(file, at, mine, EACH, MPI_BYTE);
    MPI_File_write_at_all_end(file, mine, &status);
    /* There are not that many bytes in the file. */
    memset(all, 0, (size_t)EACH * size);
    MPI_File_read_at_all_c(file, 0, all, VAST, MPI_BYTE, &status);
    expect_count("read_at_all_c", EACH * size, &status);
    look("read_at_all_c", all);
    memset(all, 0, (size_t)EACH * size);
    MPI_File_read_at_all_begin_c(file, 0, all, VAST, MPI_BYTE);
    MPI_File_read_at_all_end(file, all, &status);
    expect_count("read_at_all_begin_c", EACH * size, &status);
    look("read_at_all_begin_c", all);
    MPI_File_seek(file, 0, MPI_SEEK_SET);
    MPI_File_read_all_begin_c(file, all, VAST, MPI_BYTE);
    MPI_File_read_all_end(file, all, &status);
    expect_count("read_all_begin_c", EACH * size, &status);
    calls_alone(file, all);
}
#endif

int main(int argc, char **argv)
{
    MPI_File file;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char *all = malloc(VAST); /* no more of it than the file has is touched */
    for (int i = 0; i < EACH; i++)
        mine[i] = (char)(rank * 31 + i);
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    plain_calls(file, all);
#ifdef HAVE_LARGE
    large_calls(file, all);
#endif
    MPI_File_close(&file);
    free(all);
    MPI_Finalize();
    return 0;
}
