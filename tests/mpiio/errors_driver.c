/* What goes wrong, or is not for Brigade: FILE WHAT, and a line of each rank.
 *   full     each rank writes 1 MiB and a short strided piece; which error, how often its handler
 *            was called, and whether the next call, that reads, succeeds
 *   tiles    rank 1 alone reads by a view whose tiles lie in each other: one tile, then two
 *   atomic   a call in atomic mode, and one after it
 *   comm     the communicator is freed while the file is open; another file of the same ranks */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG (1 << 20)
#define SHORT 1000

static int rank, size, handled;
static char buf[LONG];

static void handle(MPI_File *file, int *code, ...)
{
    (void)file, (void)code;
    handled++;
}

static int class_of(int rc)
{
    int class = MPI_SUCCESS;
    if (rc)
        MPI_Error_class(rc, &class);
    return class;
}

static const char *word(int class)
{
    return class == MPI_SUCCESS        ? "success"
           : class == MPI_ERR_NO_SPACE ? "no space"
           : class == MPI_ERR_IO       ? "io"
                                       : "another";
}

static MPI_File open_file(MPI_Comm comm, const char *path)
{
    MPI_File file;
    if (MPI_File_open(comm, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file))
        MPI_Abort(MPI_COMM_WORLD, 1);
    return file;
}

static void set_turns(MPI_File file, int length)
{
    MPI_Datatype turns;
    int sizes[1] = {length * size}, parts[1] = {length}, starts[1] = {length * rank};
    MPI_Type_create_subarray(1, sizes, parts, starts, MPI_ORDER_C, MPI_BYTE, &turns);
    MPI_Type_commit(&turns);
    MPI_File_set_view(file, 0, MPI_BYTE, turns, "native", MPI_INFO_NULL);
    MPI_Type_free(&turns);
}

static void full(const char *path)
{
    MPI_File file = open_file(MPI_COMM_WORLD, path);
    MPI_Errhandler handler;
    MPI_File_create_errhandler(handle, &handler);
    MPI_File_set_errhandler(file, handler);
    int first = MPI_File_write_at_all(file, (MPI_Offset)rank * LONG, buf, LONG, MPI_BYTE,
                                      MPI_STATUS_IGNORE);
    set_turns(file, 10);
    int second = MPI_File_write_at_all(file, 0, buf, SHORT, MPI_BYTE, MPI_STATUS_IGNORE);
    int third = MPI_File_read_at_all(file, 0, buf, SHORT, MPI_BYTE, MPI_STATUS_IGNORE);
    printf("rank %d: %s, %s, %s; handled %d\n", rank, word(class_of(first)), word(class_of(second)),
           word(class_of(third)), handled);
    MPI_Errhandler_free(&handler);
    MPI_File_close(&file);
}

static void tiles(const char *path)
{
    MPI_File file = open_file(MPI_COMM_WORLD, path);
    MPI_Datatype pair, over;
    int places[2] = {0, 8};
    for (int i = 0; i < 64; i++)
        buf[i] = (char)i;
    MPI_File_write_at_all(file, 0, buf, rank ? 0 : 64, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_Type_create_indexed_block(2, 1, places, MPI_BYTE, &pair);
    MPI_Type_create_resized(pair, 0, 4, &over);
    MPI_Type_commit(&over);
    MPI_File_set_view(file, 0, MPI_BYTE, rank == 1 ? over : MPI_BYTE, "native", MPI_INFO_NULL);
    memset(buf, 0, 64);
    int rc = MPI_File_read_at_all(file, 0, buf, 2, MPI_BYTE, MPI_STATUS_IGNORE);
    int right = buf[0] == 0 && buf[1] == (rank == 1 ? 8 : 1);
    rc = rc ? rc : MPI_File_read_at_all(file, 0, buf, 4, MPI_BYTE, MPI_STATUS_IGNORE);
    right = right && (rank == 1 || (buf[2] == 2 && buf[3] == 3)); /* MPIs differ on rank 1's */
    printf("rank %d: %s, %s\n", rank, word(class_of(rc)), right ? "right" : "wrong");
    MPI_Type_free(&pair);
    MPI_Type_free(&over);
    MPI_File_close(&file);
}

static void atomic_mode(const char *path)
{
    MPI_File file = open_file(MPI_COMM_WORLD, path);
    MPI_File_set_atomicity(file, 1);
    int rc = MPI_File_write_at_all(file, rank, buf, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_set_atomicity(file, 0);
    rc = rc ? rc : MPI_File_write_at_all(file, rank, buf, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    printf("rank %d: %s\n", rank, word(class_of(rc)));
    MPI_File_close(&file);
}

static void two_files(const char *path)
{
    char other[1000];
    MPI_Comm comm;
    snprintf(other, sizeof other, "%s.2", path);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_File a = open_file(comm, path), b = open_file(MPI_COMM_WORLD, other);
    MPI_Comm_free(&comm);
    int rc = MPI_File_write_at_all(a, rank, buf, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    rc = rc ? rc : MPI_File_write_at_all(b, rank, buf, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&a);
    rc = rc ? rc : MPI_File_write_at_all(b, rank, buf, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&b);
    printf("rank %d: %s\n", rank, word(class_of(rc)));
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*make)(const char *path);
    } all[] = {{"full", full}, {"tiles", tiles}, {"atomic", atomic_mode}, {"comm", two_files}};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].name, argv[2]) == 0)
            all[i].make(argv[1]);
    MPI_Finalize();
    return 0;
}
