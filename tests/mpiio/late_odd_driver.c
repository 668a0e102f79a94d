/* As late_driver.c: what goes wrong, or changes under an open file.
 *   gone      rank 0 removes the file as soon as it has closed it; rank 1 asks MPI before
 *   removed   a file whose name is removed, then another's, while it is open
 *   defaults  the error handler of files to be opened, changed after opening
 *   differs   ranks open it in different modes
 *   levels    ranks have asked for different levels of threads
 *   full      no descriptors are left on one rank when MPI opens it: the error, then as ever
 *   told      the file that a handler of errors is called with, and what the handler asks of it
 *   rights    the same where a rank may not open the file when MPI has to
 *   exists    a file that cannot be opened, with a handler; a call without a file
 *   replaced  collective calls after its name has become another file's
 *   moved     files that MPI opens at once, named from a folder that the process leaves for one
 *             that has such names too, and by a name that is another file's then; what is in
 *             all of them
 *   raised    a limit of sizes of files that is lifted after opening
 *   sizes     longer, shorter, synced; how much there is to read then
 *   denied    the same of a file that is open for reading, and a size below 0
 *   unsynced  a sync that fails (a fault): its class, and how often a handler was called
 *   sought    a call of a shared pointer that is looked up, so that no object names it
 *   beneath   its handle at a function that is MPI's own: an error, no crash */
#include "late_driver.h"

#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static void gone(const char *path)
{
    MPI_File f = open_file(path, FOR_ALL);
    MPI_Offset at;
    if (rank) {
        usleep(100000);
        say("asked", MPI_File_get_byte_offset(f, 0, &at) == MPI_SUCCESS);
    }
    MPI_File_close(&f);
    if (!rank)
        unlink(path);
}

static void removed(const char *path)
{
    MPI_File f = open_file(path, FOR_ALL);
    MPI_Request request;
    MPI_Offset at;
    MPI_Status status;
    int n = 0;
    MPI_File_write_at_all(f, rank * 10, buf, 10, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        unlink(path);
    MPI_Barrier(MPI_COMM_WORLD);
    say("asked", MPI_File_get_byte_offset(f, 0, &at) == MPI_SUCCESS);
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
    say("refused", MPI_File_preallocate(f, 100) != MPI_SUCCESS);
    limit.rlim_cur = before;
    setrlimit(RLIMIT_NOFILE, &limit);
    say("set", MPI_File_preallocate(f, 100) == MPI_SUCCESS);
    MPI_File_close(&f);
    say_bytes(path);
}

static void raised(const char *path)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = 1 << 20;
    setrlimit(RLIMIT_FSIZE, &limit);
    MPI_File f = open_file(path, FOR_ALL);
    limit.rlim_cur = before;
    setrlimit(RLIMIT_FSIZE, &limit);
    MPI_Offset at = (1 << 20) - 50 + rank * 100;
    say("class", class_of(MPI_File_write_at_all(f, at, buf, 100, MPI_BYTE, MPI_STATUS_IGNORE)));
    MPI_File_close(&f);
    say_bytes(path);
}

static MPI_File told_of[2];
static int told[2], answered, strange;

static void tell(int which, MPI_File file)
{
    int amode = 0;
    told[which]++;
    strange += file != told_of[which];
    if (file == told_of[which])
        answered += MPI_File_get_amode(file, &amode) == MPI_SUCCESS && amode != 0;
}

static void tell_first(MPI_File *file, int *code, ...)
{
    strange += *code == MPI_SUCCESS;
    tell(0, *file);
}

static void tell_second(MPI_File *file, int *code, ...)
{
    strange += *code == MPI_SUCCESS;
    tell(1, *file);
}

static MPI_Errhandler attach(MPI_File file, MPI_File_errhandler_function *function)
{
    MPI_Errhandler handler, found;
    MPI_File_create_errhandler(function, &handler);
    MPI_File_set_errhandler(file, handler);
    MPI_File_get_errhandler(file, &found);
    say("same", found == handler);
    MPI_Errhandler_free(&found);
    return handler;
}

/* Two files, each of a handler of its own: the first is read only. */
static void tellings(const char *path)
{
    MPI_File own;
    char other[1000];
    MPI_Errhandler first, second;
    snprintf(other, sizeof other, "%s.%s", path, "other");
    told_of[0] = open_file(path, FOR_ALL);
    MPI_File_close(&told_of[0]);
    told_of[0] = open_file(path, MPI_MODE_RDONLY);
    told_of[1] = open_file(other, FOR_ALL);
    first = attach(told_of[0], tell_first);
    second = attach(told_of[1], tell_second);
    MPI_File_write_at(told_of[0], rank, buf, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_write_at_all(told_of[0], rank, buf, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_call_errhandler(told_of[0], MPI_ERR_IO);
    MPI_File_call_errhandler(told_of[1], MPI_ERR_IO);
    say("first", told[0]);
    say("second", told[1]);
    MPI_Errhandler_free(&first);
    MPI_Errhandler_free(&second);
    MPI_File_write_at(told_of[0], rank, buf, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    say("first", told[0]);
    MPI_File_close(&told_of[0]);
    /* one that MPI opens as the program does */
    MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &own);
    told_of[0] = own;
    first = attach(own, tell_first);
    MPI_File_write_at(own, rank, buf, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    say("first", told[0]);
    MPI_Errhandler_free(&first);
    MPI_File_close(&own);
    MPI_File_close(&told_of[1]);
    say("answered", answered);
    say("strange", strange);
}

static void exists(const char *path)
{
    MPI_File f = open_file(path, FOR_ALL);
    MPI_Errhandler handler;
    MPI_File_write_at_all(f, rank * 10, buf, 10, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&f);
    MPI_File_create_errhandler(handle, &handler);
    MPI_File_set_errhandler(MPI_FILE_NULL, handler);
    int rc = MPI_File_open(MPI_COMM_WORLD, path, FOR_ALL | MPI_MODE_EXCL, MPI_INFO_NULL, &f);
    say("refused", rc != MPI_SUCCESS);
    MPI_File_write_at_all(f, rank * 10, buf + 50, 10, MPI_BYTE, MPI_STATUS_IGNORE);
    say("handled", handled);
    say("none", f == MPI_FILE_NULL);
    say_bytes(path);
}

static void rights(const char *path)
{
    MPI_Errhandler handler;
    uid_t me = geteuid();
    MPI_File_create_errhandler(tell_first, &handler);
    MPI_File_set_errhandler(MPI_FILE_NULL, handler);
    told_of[0] = open_file(path, FOR_ALL);
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
    MPI_Barrier(MPI_COMM_WORLD);
    chmod(path, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == 0 && seteuid(65534))
        return;
    say("refused", MPI_File_preallocate(told_of[0], 100) != MPI_SUCCESS);
    if (me == 0 && seteuid(me))
        return;
    say("told", told[0] > 0);
    chmod(path, 0600);
    MPI_Barrier(MPI_COMM_WORLD);
    say("set", MPI_File_preallocate(told_of[0], 100) == MPI_SUCCESS);
    MPI_File_close(&told_of[0]);
    say("answered", answered == told[0]);
    say("strange", strange);
}

/* As one that looks its calls up in MPI's own library. */
static void beneath(const char *path)
{
    MPI_File f = open_file(path, FOR_ALL);
    void *library = dlopen(getenv("MPI_LIBRARY"), RTLD_LAZY | RTLD_NOLOAD);
    int (*get_size)(MPI_File, MPI_Offset *) = NULL;
    MPI_Offset bytes;
    unsigned char face[256];
    int strange = 0;
    if (library)
        *(void **)&get_size = dlsym(library, "MPI_File_get_size");
    say("found", get_size != NULL);
    say("class", get_size && class_of(get_size(f, &bytes)) == MPI_ERR_FILE);
    memcpy(face, f, sizeof face);
    for (size_t i = 0; i < sizeof face; i++)
        strange += face[i] != 0xff;
    say("strange", strange);
    MPI_File_close(&f);
}

static void replaced(const char *path)
{
    MPI_File f = open_file(path, FOR_ALL);
    memset(buf, 1 + rank, sizeof buf);
    MPI_File_write_at_all(f, rank * 10, buf, 10, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        unlink(path);
        fclose(fopen(path, "w"));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    say("write", MPI_File_write_at_all(f, rank, buf, 1, MPI_BYTE, MPI_STATUS_IGNORE) == 0);
    say("sync", MPI_File_sync(f) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    say("read", MPI_File_read_at_all(f, 2 + 10 * rank, buf, 8, MPI_BYTE, MPI_STATUS_IGNORE) == 0);
    say("first", buf[0]);
    MPI_File_close(&f);
    say_bytes(path);
}

static char folder[900];

static void go_to(const char *path)
{
    if (chdir(path))
        MPI_Abort(MPI_COMM_WORLD, 1);
}

static void go_on(const char *name)
{
    go_to("other");
    fclose(fopen(name, "w"));
}

static void replace(const char *name)
{
    char old[10];
    snprintf(old, sizeof old, "%s.old", name);
    rename(name, old);
    fclose(fopen(name, "w"));
}

/* One that MPI opens at once, as it is of one rank. OMPIO wants a folder in its name. */
static MPI_File open_here(const char *name)
{
    MPI_File f;
    go_to(folder);
    if (MPI_File_open(MPI_COMM_SELF, name, FOR_ALL, MPI_INFO_NULL, &f))
        MPI_Abort(MPI_COMM_WORLD, 1);
    return f;
}

static void write_together(const char *name, void (*move)(const char *name))
{
    MPI_File f = open_here(name);
    move(name);
    MPI_File_write_at_all(f, 0, buf, 10, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&f);
}

/* In runs that are long enough not to be left to MPI. */
static void write_alone(const char *name, void (*move)(const char *name))
{
    static char runs[2][1 << 16];
    MPI_File f = open_here(name);
    MPI_Datatype apart;
    memset(runs, 1 + rank, sizeof runs);
    MPI_File_set_size(f, 4 * sizeof runs); /* ROMIO may write anything where nothing was */
    MPI_Type_vector(2, sizeof runs[0], 2 * sizeof runs[0], MPI_BYTE, &apart);
    MPI_Type_commit(&apart);
    move(name);
    MPI_File_set_view(f, 20, MPI_BYTE, apart, "native", MPI_INFO_NULL);
    MPI_File_write_at(f, 0, runs, sizeof runs, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_Type_free(&apart);
    MPI_File_close(&f);
}

static void moved(const char *path)
{
    static const char *const all[] = {"a", "other/a", "b", "other/b", "c", "c.old", "d", "d.old"};
    MPI_File f = open_file(path, FOR_ALL);
    MPI_File_close(&f);
    snprintf(folder, sizeof folder, "%s.%d", path, rank);
    mkdir(folder, 0700);
    go_to(folder);
    mkdir("other", 0700);
    write_together("./a", go_on);
    write_alone("./b", go_on);
    write_together("./c", replace);
    write_alone("./d", replace);
    go_to(folder);
    for (int i = 0; i < 8; i++)
        say_bytes(all[i]);
}

static void sizes(const char *path)
{
    MPI_File f = open_file(path, FOR_ALL);
    MPI_Status status;
    MPI_Offset at;
    int n;
    memset(buf, 1 + rank, sizeof buf);
    MPI_File_write_at_all(f, rank * 10, buf, 10, MPI_BYTE, MPI_STATUS_IGNORE);
    for (int bytes = 30; bytes > 0; bytes -= 23) {
        say("set", MPI_File_set_size(f, bytes) == MPI_SUCCESS);
        MPI_File_get_size(f, &at);
        say("long", at);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    say("sync", MPI_File_sync(f) == MPI_SUCCESS);
    MPI_File_read_at_all(f, 2 * rank, buf, 5, MPI_BYTE, &status);
    MPI_Get_elements(&status, MPI_BYTE, &n);
    say("read", n);
    MPI_File_close(&f);
    say_bytes(path);
}

static void denied(const char *path)
{
    MPI_File f = open_file(path, FOR_ALL);
    say("below", class_of(MPI_File_set_size(f, -1)));
    MPI_File_close(&f);
    f = open_file(path, MPI_MODE_RDONLY);
    say("set", class_of(MPI_File_set_size(f, 10)));
    say("sync", class_of(MPI_File_sync(f)));
    MPI_File_close(&f);
    say_bytes(path);
}

static void unsynced(const char *path)
{
    MPI_Errhandler handler;
    MPI_File_create_errhandler(handle, &handler);
    MPI_File_set_errhandler(MPI_FILE_NULL, handler);
    MPI_File f = open_file(path, FOR_ALL);
    MPI_File_write_at_all(f, rank * 10, buf, 10, MPI_BYTE, MPI_STATUS_IGNORE);
    say("class", class_of(MPI_File_sync(f)) == MPI_ERR_IO);
    say("handled", handled);
    MPI_File_close(&f);
}

static void sought(const char *path)
{
    MPI_File f = open_file(path, FOR_ALL);
    int (*write)(MPI_File, const void *, int, MPI_Datatype, MPI_Status *);
    *(void **)&write = dlsym(RTLD_DEFAULT, "MPI_File_write_shared");
    say("class", class_of(write(f, buf, 1, MPI_INT, MPI_STATUS_IGNORE)) == MPI_ERR_IO);
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
    static const struct what all[] = {
        {"gone", gone},     {"removed", removed}, {"defaults", defaults}, {"differs", differs},
        {"levels", levels}, {"full", full},       {"told", tellings},     {"rights", rights},
        {"exists", exists}, {"beneath", beneath}, {"replaced", replaced}, {"sought", sought},
        {"raised", raised}, {"sizes", sizes},     {"denied", denied},     {"unsynced", unsynced},
        {"moved", moved}};
    return late_main(argc, argv, level, all, sizeof all / sizeof *all);
}
