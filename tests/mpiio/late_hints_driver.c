/* As late_driver.c, for a program that is linked with MPI_File_get_info: all that is said of hints,
 * of each of several files one after the other.
 *   modes     opened in three ways, without hints
 *   given     with hints, those of ROMIO's and others, twice each
 *   views     after a view without hints; one with hints, and one without again
 *   set       hints changed under an open file, and the next file's */
#include "late_driver.h"

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Their number, one of them, and a number that any letter of a key or a value changes. */
static void say_hints(MPI_File f)
{
    static char all[100][MPI_MAX_INFO_KEY + MPI_MAX_INFO_VAL + 2];
    char value[MPI_MAX_INFO_VAL + 1];
    unsigned long long sum = 0;
    MPI_Info info;
    int n = 0, found;
    if (MPI_File_get_info(f, &info))
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Info_get_nkeys(info, &n);
    for (int i = 0; i < n && i < 100; i++) {
        MPI_Info_get_nthkey(info, i, all[i]);
        MPI_Info_get(info, all[i], MPI_MAX_INFO_VAL, value, &found);
        strcat(strcat(all[i], "="), value);
    }
    qsort(all, (size_t)n, sizeof *all, compare);
    for (int i = 0; i < n; i++)
        for (const char *c = all[i]; *c; c++)
            sum = sum * 31 + (unsigned char)*c;
    say("keys", n);
    MPI_Info_get(info, "cb_nodes", MPI_MAX_INFO_VAL, value, &found);
    say("cb_nodes", found ? atoi(value) : -1);
    say("sum", (long long)(sum >> 1));
    MPI_Info_free(&info);
}

static MPI_File open_with(const char *path, int mode, MPI_Info info)
{
    MPI_File f;
    if (MPI_File_open(MPI_COMM_WORLD, path, mode, info, &f))
        MPI_Abort(MPI_COMM_WORLD, 1);
    return f;
}

static void close_after_one(MPI_File f)
{
    if (rank)
        say_hints(f);
    MPI_File_write_at_all(f, rank * 10, buf, 10, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&f);
}

static void modes(const char *path)
{
    static const int mode[] = {FOR_ALL, FOR_ALL, MPI_MODE_RDONLY, MPI_MODE_CREATE | MPI_MODE_WRONLY,
                               MPI_MODE_RDWR};
    for (size_t i = 0; i < sizeof mode / sizeof *mode; i++) {
        MPI_File f = open_file(path, mode[i]);
        say_hints(f);
        say_hints(f);
        MPI_File_close(&f);
    }
    close_after_one(open_file(path, FOR_ALL));
    say_bytes(path);
}

static void given(const char *path)
{
    static const char *const pairs[][2] = {{"cb_nodes", "1"},
                                           {"cb_buffer_size", "123456"},
                                           {"romio_ds_write", "disable"},
                                           {"nc_header_align_size", "512"},
                                           {"cb_buffer_size", "654321"}};
    MPI_Info info;
    MPI_Info_create(&info);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        MPI_Info_set(info, pairs[i][0], pairs[i][1]);
        for (int j = 0; j < 2; j++) {
            MPI_File f = open_with(path, FOR_ALL, info);
            say_hints(f);
            MPI_File_close(&f);
        }
    }
    MPI_Info_free(&info);
}

static void views(const char *path)
{
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "cb_buffer_size", "123456");
    MPI_Info_set(info, "ind_rd_buffer_size", "70000");
    for (int i = 0; i < 2; i++) {
        MPI_File f = open_file(path, FOR_ALL);
        set_turns(f, 3);
        say_hints(f);
        MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", i ? info : MPI_INFO_NULL);
        say_hints(f);
        MPI_File_set_view(f, 8, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
        say_hints(f);
        MPI_File_close(&f);
    }
    MPI_Info_free(&info);
}

static void set(const char *path)
{
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "cb_buffer_size", "123456");
    for (int i = 0; i < 3; i++) {
        MPI_File f = open_file(path, FOR_ALL);
        if (i)
            MPI_File_set_info(f, info);
        say_hints(f);
        MPI_File_close(&f);
    }
    MPI_Info_free(&info);
    close_after_one(open_file(path, FOR_ALL));
}

int main(int argc, char **argv)
{
    static const struct what all[] = {
        {"modes", modes}, {"given", given}, {"views", views}, {"set", set}};
    return late_main(argc, argv, MPI_THREAD_SINGLE, all, sizeof all / sizeof *all);
}
