/* As late_driver.c: what is left of files that MPI has opened late, when they are closed.
 *   both     MPI opened it for a call of one rank, and for one of all
 *   ordered  for the shared pointer, for which some MPIs make files of their own */
#include "late_driver.h"

#include <dirent.h>
#include <libgen.h>
#include <sys/stat.h>
#include <unistd.h>

static void ask_and_lengthen(MPI_File f)
{
    MPI_Offset at;
    say("asked", MPI_File_get_byte_offset(f, 0, &at) == MPI_SUCCESS);
    say("longer", MPI_File_preallocate(f, 1000) == MPI_SUCCESS);
}

static void write_in_order(MPI_File f)
{
    int rc = MPI_File_write_ordered(f, buf, 8, MPI_BYTE, MPI_STATUS_IGNORE);
    say("written", rc == MPI_SUCCESS);
}

/* Descriptors of this process for what lies in a folder. */
static int open_in(const char *folder)
{
    char link[300], target[1000];
    int n = 0;
    DIR *all = opendir("/proc/self/fd");
    for (struct dirent *entry; all && (entry = readdir(all));) {
        snprintf(link, sizeof link, "/proc/self/fd/%s", entry->d_name);
        ssize_t length = readlink(link, target, sizeof target);
        n += length > 0 && strncmp(target, folder, strlen(folder)) == 0;
    }
    closedir(all);
    return n;
}

static int files_in(const char *folder)
{
    int n = 0;
    DIR *all = opendir(folder);
    while (all && readdir(all))
        n++;
    closedir(all);
    return n - 2;
}

static void close_three(const char *path, void (*call)(MPI_File))
{
    char name[1000], *folder;
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s.d/%d", path, i);
        MPI_File f = open_file(name, FOR_ALL);
        call(f);
        say("closed", MPI_File_close(&f) == MPI_SUCCESS && f == MPI_FILE_NULL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    folder = dirname(name);
    say("open", open_in(folder));
    say("files", files_in(folder));
}

static void in_a_folder(const char *path, void (*call)(MPI_File))
{
    char folder[1000];
    snprintf(folder, sizeof folder, "%s.d", path);
    if (rank == 0 && mkdir(folder, 0700))
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    close_three(path, call);
}

static void both(const char *path)
{
    in_a_folder(path, ask_and_lengthen);
}

static void ordered(const char *path)
{
    in_a_folder(path, write_in_order);
}

int main(int argc, char **argv)
{
    static const struct what all[] = {{"both", both}, {"ordered", ordered}};
    return late_main(argc, argv, MPI_THREAD_SINGLE, all, sizeof all / sizeof *all);
}
