/* Calls of a file that MPI may not have opened yet, whose lines must be the same with and without
 * the library:
 *   asks      what is asked of a file: amode, group, size, position, view, extent, atomicity
 *   alone     short independent writes by the pointer through a view, then collective calls
 *   shared    the shared pointer, alone and in order
 *   turns     non-blocking collective writes, each begun before the other rank's
 *   refused   a missing file, writing what is open for reading; how often a handler was called
 *   returned  the handler that files have from the beginning, given once more
 *   many      seven files at once
 *   laid      with each hint by which files are laid out as they are made, and without
 *   worlds    three at once whose hints ask for different memory between the ranks
 * With NO_SHARED it names no call of a shared pointer. */
#include "late_driver.h"

static void asks(const char *path)
{
    MPI_File f = open_file(path, FOR_ALL);
    MPI_Group group;
    MPI_Datatype etype, filetype;
    MPI_Offset at;
    MPI_Aint extent;
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

#ifndef NO_SHARED
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

static void ask_mpi(MPI_File f)
{
    MPI_File_write_shared(f, buf, 0, MPI_INT, MPI_STATUS_IGNORE);
}
#else
static void ask_mpi(MPI_File f)
{
    MPI_Offset at;
    MPI_File_get_byte_offset(f, 0, &at);
}
#endif

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

static void returned(const char *path)
{
    MPI_File f = open_file(path, FOR_ALL);
    say("set", MPI_File_set_errhandler(f, MPI_ERRORS_RETURN) == MPI_SUCCESS);
    MPI_File_write_at_all(f, rank * 1000, buf, 1000, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&f);
    say_bytes(path);
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
        ask_mpi(files[i]);
        MPI_File_write_all(files[i], buf + i, 100, MPI_INT, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < 7; i++) {
        MPI_File_close(&files[i]);
        snprintf(name, sizeof name, "%s.%d", path, i);
        say_bytes(name);
    }
}

static MPI_File open_hinted(const char *path, const char *key, const char *value)
{
    MPI_File file;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, key, value);
    if (MPI_File_open(MPI_COMM_WORLD, path, FOR_ALL, info, &file))
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Info_free(&info);
    return file;
}

static void laid(const char *path)
{
    static const char *const keys[] = {"striping_factor",
                                       "striping_unit",
                                       "start_iodevice",
                                       "romio_lustre_start_iodevice",
                                       "panfs_layout_type",
                                       "stripe_size",
                                       "stripe_width",
                                       "OMPI_MCA_fs_lustre_stripe_size",
                                       "OMPI_MCA_fs_lustre_stripe_width",
                                       NULL};
    MPI_File f;
    for (int i = 0; keys[i]; i++) {
        f = open_hinted(path, keys[i], strstr(keys[i], "factor") ? "1" : "65536");
        MPI_File_close(&f);
    }
    f = open_file(path, FOR_ALL);
    MPI_File_close(&f);
    say_bytes(path);
}

static void worlds(const char *path)
{
    static const char *const hints[3][2] = {
        {"cb_nodes", "1"}, {"brigade_share", "no"}, {"brigade_segment", "1M"}};
    MPI_File files[3];
    char name[3][1000];
    for (int i = 0; i < 3; i++) {
        snprintf(name[i], sizeof name[i], "%s.%d", path, i);
        files[i] = open_hinted(name[i], hints[i][0], hints[i][1]);
        set_turns(files[i], 5 + i);
    }
    for (int call = 0; call < 4; call++)
        for (int i = 2; i >= 0; i--)
            MPI_File_write_all(files[i], buf + call, 500, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_close(&files[0]);
    files[0] = open_hinted(name[0], hints[0][0], hints[0][1]);
    set_turns(files[0], 3);
    MPI_File_read_all(files[0], buf, 1000, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_write_all(files[1], buf, 1000, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_write_all(files[2], buf, 1000, MPI_INT, MPI_STATUS_IGNORE);
    for (int i = 0; i < 3; i++) {
        MPI_File_close(&files[i]);
        say_bytes(name[i]);
    }
}

int main(int argc, char **argv)
{
    int level = MPI_THREAD_SINGLE;
    static const struct what all[] = {
        {"asks", asks},         {"alone", alone}, {"turns", turns},   {"refused", refused},
        {"returned", returned}, {"many", many},   {"worlds", worlds}, {"laid", laid},
#ifndef NO_SHARED
        {"shared", shared},
#endif
    };
    return late_main(argc, argv, level, all, sizeof all / sizeof *all);
}
