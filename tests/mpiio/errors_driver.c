/* What goes wrong, or is not for Brigade: FILE WHAT, and a line of each rank.
 *   full     each rank writes 1 MiB and a short strided piece; which error, how often its handler
 *            was called, and whether the next call, that reads, succeeds
 *   apart    each rank writes 100 runs of 10 bytes, far apart, and reads them
 *   cut      runs of 192 bytes in turns, read by the other rank than wrote them; the file ends 50
 *            bytes before the last one does
 *   tiles    rank 1 alone reads by a view whose tiles lie in each other: one tile, then two
 *   atomic   a call in atomic mode, and one after it
 *   closes   a split call fails, and its handler closes the file, opens another, and begins a split
 *            call there; late, and opened by MPI at once; how those calls end
 *   unclosed what closing tells, of a file that is opened late, and of one that MPI opens (APPEND):
 *            bytes that all ranks wrote, and long runs that one wrote alone; its handler, which
 *            closes it once more, and how often that was called
 *   vast     counts that no form of the MPI takes, of what cannot be done here: of one rank in
 *            calls of all, and in one of its own; how often a handler was called
 *   comm     the communicator is freed while the file is open; another file of the same ranks */
#include "late_driver.h"

#include <dlfcn.h>

#define LONG (1 << 20)
#define SHORT 1000

static char block[LONG];

static const char *word(int class)
{
    return class == MPI_SUCCESS        ? "success"
           : class == MPI_ERR_NO_SPACE ? "no space"
           : class == MPI_ERR_QUOTA    ? "quota"
           : class == MPI_ERR_COUNT    ? "count"
           : class == MPI_ERR_IO       ? "io"
                                       : "another";
}

static MPI_File open_on(MPI_Comm comm, const char *path)
{
    MPI_File file;
    if (MPI_File_open(comm, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file))
        MPI_Abort(MPI_COMM_WORLD, 1);
    return file;
}

static void full(const char *path)
{
    MPI_File file = open_on(MPI_COMM_WORLD, path);
    MPI_Errhandler handler;
    MPI_File_create_errhandler(handle, &handler);
    MPI_File_set_errhandler(file, handler);
    int first = MPI_File_write_at_all(file, (MPI_Offset)rank * LONG, block, LONG, MPI_BYTE,
                                      MPI_STATUS_IGNORE);
    set_turns_of(file, 0, MPI_BYTE, 10);
    int second = MPI_File_write_at_all(file, 0, block, SHORT, MPI_BYTE, MPI_STATUS_IGNORE);
    int third = MPI_File_read_at_all(file, 0, block, SHORT, MPI_BYTE, MPI_STATUS_IGNORE);
    printf("rank %d: %s, %s, %s; handled %d\n", rank, word(class_of(first)), word(class_of(second)),
           word(class_of(third)), handled);
    MPI_Errhandler_free(&handler);
    MPI_File_close(&file);
}

static void apart(const char *path)
{
    MPI_File file = open_on(MPI_COMM_WORLD, path);
    MPI_Datatype runs, view;
    MPI_Type_vector(100, 10, 20000, MPI_BYTE, &runs);
    MPI_Type_create_resized(runs, 0, 100 * 20000, &view);
    MPI_Type_commit(&view);
    MPI_File_set_view(file, rank * 10000, MPI_BYTE, view, "native", MPI_INFO_NULL);
    int first = MPI_File_write_at_all(file, 0, block, SHORT, MPI_BYTE, MPI_STATUS_IGNORE);
    int second = MPI_File_read_at_all(file, 0, block, SHORT, MPI_BYTE, MPI_STATUS_IGNORE);
    printf("rank %d: %s, %s\n", rank, word(class_of(first)), word(class_of(second)));
    MPI_Type_free(&view);
    MPI_Type_free(&runs);
    MPI_File_close(&file);
}

static void cut(const char *path)
{
    MPI_File file = open_on(MPI_COMM_WORLD, path);
    MPI_Datatype runs;
    MPI_Status status;
    int n = 0, bytes = 192 * 1000, wrong = 0, wanted = rank == 1 ? bytes - 50 : bytes;
    MPI_Type_vector(1000, 192, 192 * 2, MPI_BYTE, &runs);
    MPI_Type_commit(&runs);
    MPI_File_set_view(file, (1 - rank) * 192, MPI_BYTE, runs, "native", MPI_INFO_NULL);
    for (int i = 0; i < bytes; i++)
        block[i] = (char)(i * 7 + rank);
    MPI_File_write_at_all(file, 0, block, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_set_size(file, (MPI_Offset)bytes * 2 - 50);
    memset(block, 'x', sizeof block);
    MPI_File_set_view(file, rank * 192, MPI_BYTE, runs, "native", MPI_INFO_NULL);
    MPI_File_read_at_all(file, 0, block, bytes, MPI_BYTE, &status);
    MPI_Get_elements(&status, MPI_BYTE, &n);
    for (int i = 0; i < bytes; i++)
        wrong += block[i] != (i < wanted ? (char)(i * 7 + 1 - rank) : 'x');
    printf("rank %d: %s, %d missing, %d wrong\n", rank, n == wanted ? "right" : "short", wanted - n,
           wrong);
    MPI_Type_free(&runs);
    MPI_File_close(&file);
}

static MPI_Comm there;
static MPI_File closing, second;
static char name_of_second[1000];
static int began;

static void close_and_go_on(MPI_File *file, int *code, ...)
{
    (void)code;
    closing = *file;
    MPI_File_close(&closing);
    second = open_on(there, name_of_second);
    began = MPI_File_write_at_all_begin(second, rank * 10, block, 10, MPI_BYTE);
}

/* The second file has the memory of the first one, as likely as not. */
static void closes_on(MPI_Comm comm, const char *path)
{
    MPI_Errhandler handler;
    MPI_Status status;
    int n = 0;
    there = comm;
    snprintf(name_of_second, sizeof name_of_second, "%s.2", path);
    MPI_File file = open_on(comm, path);
    MPI_File_create_errhandler(close_and_go_on, &handler);
    MPI_File_set_errhandler(file, handler);
    int first = MPI_File_write_at_all_begin(file, (MPI_Offset)rank * LONG, block, LONG, MPI_BYTE);
    int end = MPI_File_write_at_all_end(second, block, &status);
    MPI_Get_elements(&status, MPI_BYTE, &n);
    printf("rank %d: %s, %s, %s, %d bytes\n", rank, word(class_of(first)), word(class_of(began)),
           word(class_of(end)), n);
    MPI_File_close(&second);
    MPI_Errhandler_free(&handler);
}

static void closes(const char *path)
{
    closes_on(MPI_COMM_WORLD, path);
}

/* MPI opens it at once. Then one with its handle, as likely as not, that is left to MPI. */
static void closes_other(const char *path)
{
    MPI_Comm turned;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
    closes_on(turned, path);
    MPI_Comm_free(&turned);
}

static void close_again(MPI_File *file, int *code, ...)
{
    MPI_File same = *file;
    (void)code;
    handled += MPI_File_close(&same) == MPI_SUCCESS;
}

static void unclosed_of(const char *path, int mode)
{
    MPI_File file = open_file(path, FOR_ALL | mode);
    MPI_Errhandler handler;
    MPI_Datatype runs;
    MPI_File_create_errhandler(close_again, &handler);
    MPI_File_set_errhandler(file, handler);
    int first = MPI_File_write_at_all(file, rank * 10, block, 10, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_Type_vector(2, 1 << 17, 1 << 18, MPI_BYTE, &runs);
    MPI_Type_commit(&runs);
    MPI_File_set_view(file, 1 << 20, MPI_BYTE, runs, "native", MPI_INFO_NULL);
    int second = MPI_File_write_at(file, 0, block, 1 << 18, MPI_BYTE, MPI_STATUS_IGNORE);
    int last = MPI_File_close(&file);
    printf("rank %d: %s, %s, %s; handled %d, %s\n", rank, word(class_of(first)),
           word(class_of(second)), word(class_of(last)), handled,
           file == MPI_FILE_NULL ? "closed" : "open");
    MPI_Type_free(&runs);
    MPI_Errhandler_free(&handler);
}

static void unclosed(const char *path)
{
    unclosed_of(path, 0);
}

static void unclosed_appended(const char *path)
{
    unclosed_of(path, MPI_MODE_APPEND);
}

/* Looked up as mpi4py does: not every MPI has them. */
static void vast(const char *path)
{
    int (*write_at_all)(MPI_File, MPI_Offset, const void *, MPI_Count, MPI_Datatype, MPI_Status *);
    int (*begin)(MPI_File, MPI_Offset, const void *, MPI_Count, MPI_Datatype);
    int (*write_at)(MPI_File, MPI_Offset, const void *, MPI_Count, MPI_Datatype, MPI_Status *);
    MPI_Errhandler handler;
    MPI_Count many = rank ? 3000000000 : 10;
    const char *mine = rank ? NULL : block;
    MPI_File file = open_on(MPI_COMM_WORLD, path);
    *(void **)&write_at_all = dlsym(RTLD_DEFAULT, "MPI_File_write_at_all_c");
    *(void **)&begin = dlsym(RTLD_DEFAULT, "MPI_File_write_at_all_begin_c");
    *(void **)&write_at = dlsym(RTLD_DEFAULT, "MPI_File_write_at_c");
    MPI_File_create_errhandler(handle, &handler);
    MPI_File_set_errhandler(file, handler);
    int first = write_at_all(file, 0, mine, many, MPI_BYTE, MPI_STATUS_IGNORE);
    int second = begin(file, 0, mine, many, MPI_BYTE);
    int third = write_at(file, 0, NULL, 3000000000, MPI_BYTE, MPI_STATUS_IGNORE);
    int last = MPI_File_write_at_all(file, rank, block, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    printf("rank %d: %s, %s, %s, %s; handled %d\n", rank, word(class_of(first)),
           word(class_of(second)), word(class_of(third)), word(class_of(last)), handled);
    MPI_Errhandler_free(&handler);
    MPI_File_close(&file);
}

static void tiles(const char *path)
{
    MPI_File file = open_on(MPI_COMM_WORLD, path);
    MPI_Datatype pair, over;
    int places[2] = {0, 8};
    for (int i = 0; i < 64; i++)
        block[i] = (char)i;
    MPI_File_write_at_all(file, 0, block, rank ? 0 : 64, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_Type_create_indexed_block(2, 1, places, MPI_BYTE, &pair);
    MPI_Type_create_resized(pair, 0, 4, &over);
    MPI_Type_commit(&over);
    MPI_File_set_view(file, 0, MPI_BYTE, rank == 1 ? over : MPI_BYTE, "native", MPI_INFO_NULL);
    memset(block, 0, 64);
    int rc = MPI_File_read_at_all(file, 0, block, 2, MPI_BYTE, MPI_STATUS_IGNORE);
    int right = block[0] == 0 && block[1] == (rank == 1 ? 8 : 1);
    rc = rc ? rc : MPI_File_read_at_all(file, 0, block, 4, MPI_BYTE, MPI_STATUS_IGNORE);
    right = right && (rank == 1 || (block[2] == 2 && block[3] == 3)); /* MPIs differ on rank 1's */
    printf("rank %d: %s, %s\n", rank, word(class_of(rc)), right ? "right" : "wrong");
    MPI_Type_free(&pair);
    MPI_Type_free(&over);
    MPI_File_close(&file);
}

static void atomic_mode(const char *path)
{
    MPI_File file = open_on(MPI_COMM_WORLD, path);
    MPI_File_set_atomicity(file, 1);
    int rc = MPI_File_write_at_all(file, rank, block, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_set_atomicity(file, 0);
    rc = rc ? rc : MPI_File_write_at_all(file, rank, block, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    printf("rank %d: %s\n", rank, word(class_of(rc)));
    MPI_File_close(&file);
}

static void two_files(const char *path)
{
    char other[1000];
    MPI_Comm comm;
    snprintf(other, sizeof other, "%s.2", path);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_File a = open_on(comm, path), b = open_on(MPI_COMM_WORLD, other);
    MPI_Comm_free(&comm);
    int rc = MPI_File_write_at_all(a, rank, block, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    rc = rc ? rc : MPI_File_write_at_all(b, rank, block, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&a);
    rc = rc ? rc : MPI_File_write_at_all(b, rank, block, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&b);
    printf("rank %d: %s\n", rank, word(class_of(rc)));
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*make)(const char *path);
    } all[] = {{"full", full},
               {"apart", apart},
               {"cut", cut},
               {"closes", closes},
               {"closes_other", closes_other},
               {"unclosed", unclosed},
               {"unclosed_appended", unclosed_appended},
               {"vast", vast},
               {"tiles", tiles},
               {"atomic", atomic_mode},
               {"comm", two_files}};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].name, argv[2]) == 0)
            all[i].make(argv[1]);
    MPI_Finalize();
    return 0;
}
