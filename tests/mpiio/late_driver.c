/* Calls of a file that MPI may not have opened yet: FILE WHAT, and a line of each rank, which must
 * be the same with and without the library.
 *   asks      what is asked of a file: amode, group, size, position, view, extent, atomicity, hints
 *   alone     short independent writes by the pointer through a view, then collective calls
 *   shared    the shared pointer, alone and in order
 *   turns     non-blocking collective writes, each begun before the other rank's
 *   refused   a missing file, writing what is open for reading; how often a handler was called
 *   many      seven files at once
 *   gone      rank 0 removes the file as soon as it has closed it; rank 1 asks MPI before
 *   removed   a file whose name is removed, then another's, while it is open
 *   defaults  the error handler of files to be opened, changed after opening
 *   hints     those that come with a view
 *   differs   ranks open it in different modes
 *   levels    ranks have asked for different levels of threads
 *   full      no descriptors are left on one rank when MPI opens it: the error, then as ever */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static int rank, size, handled;
static char buf[1 << 16], line[1000];

static void say(const char *name, long long value)
{
    size_t used = strlen(line);
    snprintf(line + used, sizeof line - used, " %s=%lld", name, value);
}

static int class_of(int rc)
{
    int class = MPI_SUCCESS;
    if (rc)
        MPI_Error_class(rc, &class);
    return class;
}

static void handle(MPI_File *file, int *code, ...)
{
    (void)file, (void)code;
    handled++;
}

static MPI_File open_file(const char *path, int mode)
{
    MPI_File file;
    if (MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &file))
        MPI_Abort(MPI_COMM_WORLD, 1);
    return file;
}

#define FOR_ALL (MPI_MODE_CREATE | MPI_MODE_RDWR)

/* Blocks of `n` ints in turns. */
static void set_turns(MPI_File file, int n)
{
    MPI_Datatype turns;
    int all[1] = {n * size}, mine[1] = {n}, start[1] = {n * rank};
    MPI_Type_create_subarray(1, all, mine, start, MPI_ORDER_C, MPI_INT, &turns);
    MPI_Type_commit(&turns);
    MPI_File_set_view(file, 4, MPI_INT, turns, "native", MPI_INFO_NULL);
    MPI_Type_free(&turns);
}

/* A number that any byte of the file changes. */
static void say_bytes(const char *path)
{
    unsigned long long sum = 0;
    int c;
    MPI_Barrier(MPI_COMM_WORLD);
    FILE *file = fopen(path, "r");
    while (file && (c = getc(file)) != EOF)
        sum = sum * 31 + (unsigned)c;
    say("size", file ? ftell(file) : -1);
    say("bytes", (long long)(sum >> 1));
    if (file)
        fclose(file);
}

static void asks(const char *path)
{
    MPI_File f = open_file(path, FOR_ALL);
    MPI_Group group;
    MPI_Datatype etype, filetype;
    MPI_Offset at;
    MPI_Aint extent;
    MPI_Info info;
    int n, on, amode, integers, addresses, types, etypes, filetypes;
    char name[MPI_MAX_DATAREP_STRING];
    MPI_File_write_at_all(f, rank * 1000, buf, 1000, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_get_size(f, &at);
    say("size", at);
    MPI_File_get_amode(f, &amode);
    say("amode", amode == FOR_ALL);
    MPI_File_get_group(f, &group);
    MPI_Group_size(group, &n);
    say("group", n);
    MPI_Group_free(&group);
    MPI_File_get_atomicity(f, &on);
    say("atomic", on);
    set_turns(f, 5);
    MPI_File_seek(f, 7, MPI_SEEK_SET);
    MPI_File_get_position(f, &at);
    say("position", at);
    MPI_File_seek(f, 4, MPI_SEEK_CUR);
    MPI_File_get_position(f, &at);
    say("position", at);
    MPI_File_get_byte_offset(f, at, &at);
    say("byte", at);
    MPI_File_get_view(f, &at, &etype, &filetype, name);
    MPI_Type_get_envelope(etype, &integers, &addresses, &types, &etypes);
    MPI_Type_get_envelope(filetype, &integers, &addresses, &types, &filetypes);
    MPI_Type_get_extent(filetype, &(MPI_Aint){0}, &extent);
    say("view", at);
    say("named", etypes == MPI_COMBINER_NAMED && filetypes != MPI_COMBINER_NAMED);
    say("extent", extent);
    say(name, 1);
    MPI_Type_free(&filetype);
    MPI_File_get_type_extent(f, MPI_INT, &extent);
    say("extent", extent);
    MPI_File_get_info(f, &info);
    say("info", info != MPI_INFO_NULL);
    MPI_Info_free(&info);
    MPI_File_close(&f);
    say("closed", f == MPI_FILE_NULL);
}

static void alone(const char *path)
{
    MPI_File f = open_file(path, FOR_ALL);
    MPI_Offset at;
    MPI_Status status;
    int n;
    /* what lies between runs past the end of a file ROMIO fills with anything */
    MPI_File_write_at_all(f, rank * 1000, buf, 1000, MPI_BYTE, MPI_STATUS_IGNORE);
    set_turns(f, 3);
    MPI_File_write_all(f, buf, 30, MPI_INT, MPI_STATUS_IGNORE);
    if (rank == 0)
        MPI_File_write(f, buf + 999, 20, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_get_position(f, &at);
    say("position", at);
    MPI_File_write_all(f, buf + 5, 12, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_get_position(f, &at);
    say("position", at);
    MPI_File_set_size(f, 10000);
    MPI_File_get_position(f, &at);
    say("position", at);
    MPI_File_write_all(f, buf + 77, 3, MPI_INT, &status);
    MPI_Get_elements(&status, MPI_INT, &n);
    say("count", n);
    MPI_File_sync(f);
    MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    MPI_File_get_position(f, &at);
    say("position", at);
    MPI_File_read_at(f, 0, buf, 100, MPI_BYTE, &status);
    MPI_Get_elements(&status, MPI_BYTE, &n);
    say("count", n);
    MPI_File_close(&f);
    say_bytes(path);
}

static void shared(const char *path)
{
    MPI_File f = open_file(path, FOR_ALL);
    MPI_Offset at;
    MPI_Request request;
    MPI_Status status;
    int n;
    memset(buf, 7, sizeof buf);
    MPI_File_set_view(f, 8, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_write_shared(f, buf, 5, MPI_INT, &status);
    MPI_Get_elements(&status, MPI_INT, &n);
    say("count", n);
    MPI_File_iwrite_shared(f, buf, 2, MPI_INT, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_get_position_shared(f, &at);
    say("shared", at);
    memset(buf, rank, sizeof buf);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_write_ordered(f, buf, 3, MPI_INT, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_get_position_shared(f, &at);
    say("shared", at);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_seek_shared(f, 2, MPI_SEEK_SET);
    MPI_File_get_position_shared(f, &at);
    say("shared", at);
    MPI_File_close(&f);
    say_bytes(path);
}

/* Rank 1 begins its call when rank 0 has begun its own, and ended it. */
static void turns(const char *path)
{
    MPI_File f = open_file(path, FOR_ALL);
    MPI_Request request;
    MPI_Status status;
    MPI_Offset at;
    int n;
    set_turns(f, 2);
    if (rank)
        MPI_Recv(&n, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_File_iwrite_all(f, buf, 1000, MPI_INT, &request);
    if (!rank)
        MPI_Send(&rank, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    MPI_Get_elements(&status, MPI_INT, &n);
    say("count", n);
    MPI_File_get_position(f, &at);
    say("position", at);
    MPI_File_iread_at_all(f, 10, buf, 100, MPI_INT, &request);
    MPI_Wait(&request, &status);
    MPI_Get_elements(&status, MPI_INT, &n);
    say("count", n);
    MPI_File_close(&f);
    say_bytes(path);
}

static void refused(const char *path)
{
    MPI_File f;
    MPI_Errhandler handler, found;
    MPI_File_create_errhandler(handle, &handler);
    int rc = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &f);
    say("missing", class_of(rc) == MPI_ERR_NO_SUCH_FILE);
    f = open_file(path, MPI_MODE_CREATE | MPI_MODE_WRONLY);
    MPI_File_write_at_all(f, rank, buf, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&f);
    f = open_file(path, MPI_MODE_RDONLY);
    MPI_File_set_errhandler(f, handler);
    rc = MPI_File_write_at(f, 0, buf, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    say("refused", rc != MPI_SUCCESS);
    MPI_File_set_view(f, 0, MPI_DATATYPE_NULL, MPI_BYTE, "native", MPI_INFO_NULL);
    MPI_File_set_size(f, 7);
    say("handled", handled);
    MPI_File_get_errhandler(f, &found);
    say("same", found == handler);
    rc = MPI_File_read_at_all(f, rank, buf, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    say("read", rc == MPI_SUCCESS);
    MPI_Errhandler_free(&found);
    MPI_Errhandler_free(&handler);
    MPI_File_close(&f);
}

static void many(const char *path)
{
    MPI_File files[7];
    char name[1000];
    for (int i = 0; i < 7; i++) {
        snprintf(name, sizeof name, "%s.%d", path, i);
        files[i] = open_file(name, FOR_ALL);
        set_turns(files[i], 1 + i);
    }
    for (int i = 0; i < 7; i++) {
        MPI_File_write_shared(files[i], buf, 0, MPI_INT, MPI_STATUS_IGNORE);
        MPI_File_write_all(files[i], buf + i, 100, MPI_INT, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < 7; i++) {
        MPI_File_close(&files[i]);
        snprintf(name, sizeof name, "%s.%d", path, i);
        say_bytes(name);
    }
}

static void gone(const char *path)
{
    MPI_File f = open_file(path, FOR_ALL);
    MPI_Info info = MPI_INFO_NULL;
    if (rank) {
        usleep(100000);
        say("asked", MPI_File_get_info(f, &info) == MPI_SUCCESS);
        MPI_Info_free(&info);
    }
    MPI_File_close(&f);
    if (!rank)
        unlink(path);
}

static void removed(const char *path)
{
    MPI_File f = open_file(path, FOR_ALL);
    MPI_Request request;
    MPI_Info info = MPI_INFO_NULL;
    MPI_Offset at;
    MPI_Status status;
    int n = 0;
    MPI_File_write_at_all(f, rank * 10, buf, 10, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        unlink(path);
    MPI_Barrier(MPI_COMM_WORLD);
    say("asked", MPI_File_get_info(f, &info) == MPI_SUCCESS);
    if (info != MPI_INFO_NULL)
        MPI_Info_free(&info);
    if (rank == 0)
        fclose(fopen(path, "w"));
    MPI_Barrier(MPI_COMM_WORLD);
    say("set", MPI_File_set_size(f, 30) == MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_get_size(f, &at);
    say("long", at);
    if (MPI_File_iread_at(f, 5, buf, 15, MPI_BYTE, &request) == MPI_SUCCESS) {
        MPI_Wait(&request, &status);
        MPI_Get_elements(&status, MPI_BYTE, &n);
    }
    say("count", n);
    say("read", buf[0]);
    MPI_File_close(&f);
    say_bytes(path);
}

static void defaults(const char *path)
{
    MPI_File f = open_file(path, FOR_ALL);
    MPI_Errhandler handler, found;
    MPI_File_close(&f);
    MPI_File_create_errhandler(handle, &handler);
    MPI_File_set_errhandler(MPI_FILE_NULL, handler);
    f = open_file(path, MPI_MODE_RDONLY);
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
    MPI_File_write_at_all(f, rank, buf, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    say("handled", handled);
    MPI_File_get_errhandler(f, &found);
    say("same", found == handler);
    MPI_Errhandler_free(&found);
    MPI_File_get_errhandler(MPI_FILE_NULL, &found);
    say("later", found == MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&found);
    MPI_File_close(&f); /* MPICH 4.0 has lost count of the handler by now */
}

static void hints(const char *path)
{
    MPI_File f = open_file(path, FOR_ALL);
    MPI_Info info;
    char value[100] = "0";
    int found;
    MPI_Info_create(&info);
    MPI_Info_set(info, "cb_buffer_size", "123456");
    MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", info);
    MPI_Info_free(&info);
    MPI_File_get_info(f, &info);
    MPI_Info_get(info, "cb_buffer_size", 99, value, &found);
    say("cb_buffer_size", atoi(value));
    MPI_Info_free(&info);
    MPI_File_close(&f);
}

/* A wrong program; MPI refuses it, or not. */
static void differs(const char *path)
{
    MPI_File f;
    int mode = FOR_ALL | (rank ? 0 : MPI_MODE_DELETE_ON_CLOSE);
    int rc = MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &f);
    say("opened", rc == MPI_SUCCESS);
    if (rc == MPI_SUCCESS)
        MPI_File_close(&f);
    rc = MPI_File_open(MPI_COMM_WORLD, path, rank ? FOR_ALL : MPI_MODE_CREATE | MPI_MODE_WRONLY,
                       MPI_INFO_NULL, &f);
    say("opened", rc == MPI_SUCCESS);
    if (rc == MPI_SUCCESS)
        MPI_File_close(&f);
    say_bytes(path);
}

static void levels(const char *path)
{
    MPI_File f = open_file(path, FOR_ALL);
    MPI_File_write_at_all(f, rank * 10, buf, 10, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&f);
    say_bytes(path);
}

static void full(const char *path)
{
    MPI_File f = open_file(path, FOR_ALL);
    struct rlimit limit;
    MPI_File_write_at_all(f, rank * 10, buf, 10, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    getrlimit(RLIMIT_NOFILE, &limit);
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = rank ? 3 : before;
    setrlimit(RLIMIT_NOFILE, &limit);
    say("refused", MPI_File_set_size(f, 100) != MPI_SUCCESS);
    limit.rlim_cur = before;
    setrlimit(RLIMIT_NOFILE, &limit);
    say("set", MPI_File_set_size(f, 100) == MPI_SUCCESS);
    MPI_File_close(&f);
    say_bytes(path);
}

/* Before MPI_Init says it. */
static int is_first(void)
{
    const char *name = getenv("OMPI_COMM_WORLD_RANK");
    name = name ? name : getenv("PMI_RANK");
    return !name || atoi(name) == 0;
}

int main(int argc, char **argv)
{
    int level = strcmp(argv[2], "levels") || is_first() ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE;
    static const struct {
        const char *name;
        void (*make)(const char *path);
    } all[] = {{"asks", asks},         {"alone", alone}, {"shared", shared},   {"turns", turns},
               {"refused", refused},   {"many", many},   {"gone", gone},       {"removed", removed},
               {"defaults", defaults}, {"hints", hints}, {"differs", differs}, {"levels", levels},
               {"full", full}};
    MPI_Init_thread(&argc, &argv, level, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (size_t i = 0; i < sizeof buf; i++)
        buf[i] = (char)(i * 7 + (size_t)rank);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].name, argv[2]) == 0)
            all[i].make(argv[1]);
    printf("rank %d:%s\n", rank, line);
    MPI_Finalize();
    return 0;
}
