/* As late_driver.c: a rank writes without the others, behind what they know of the file, and late;
 * then all read together, in turns of short runs: FILE HOW, and what it finds.
 *   at       MPI_File_write_at
 *   begun    MPI_File_iwrite_at
 *   ordered  MPI_File_write_ordered, where it is the only one that writes
 *   shared   MPI_File_write_shared */
#include "late_driver.h"

#include <unistd.h>

enum {
    RUN = 64,
    RUNS = 1000,
    BYTES = RUN * RUNS
};

static char found[BYTES];

static void write_at(MPI_File f, MPI_Offset from)
{
    if (rank == 1)
        MPI_File_write_at(f, from, buf, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
}

static void write_begun(MPI_File f, MPI_Offset from)
{
    MPI_Request request;
    if (rank != 1)
        return;
    MPI_File_iwrite_at(f, from, buf, BYTES, MPI_BYTE, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void write_shared(MPI_File f, MPI_Offset from)
{
    (void)from;
    if (rank == 1)
        MPI_File_write_shared(f, buf, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
}

static void write_ordered(MPI_File f, MPI_Offset from)
{
    (void)from;
    MPI_File_write_ordered(f, buf, rank == 1 ? BYTES : 0, MPI_BYTE, MPI_STATUS_IGNORE);
}

/* From so many runs on. Rank 0 comes to it before the other has written. */
static void read_together(MPI_File f, MPI_Offset from, void (*write)(MPI_File, MPI_Offset))
{
    MPI_Status status;
    int n = 0;
    memset(found, 0, BYTES);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
        usleep(200000);
    write(f, from);
    int rc = MPI_File_read_at_all(f, from, found, BYTES, MPI_BYTE, &status);
    say("failed", rc != MPI_SUCCESS);
    if (rc == MPI_SUCCESS)
        MPI_Get_count(&status, MPI_BYTE, &n);
    if (rank == 1) {
        say("count", n);
        say("same", memcmp(buf, found, BYTES) == 0);
    }
}

static void twice(const char *path, void (*write)(MPI_File, MPI_Offset))
{
    MPI_File f = open_file(path, FOR_ALL);
    MPI_Datatype run;
    MPI_Type_contiguous(RUN, MPI_BYTE, &run);
    MPI_Type_commit(&run);
    set_turns_of(f, 0, run, 1);
    MPI_Type_free(&run);
    read_together(f, 0, write);
    read_together(f, RUNS, write);
    MPI_File_close(&f);
}

static void at(const char *path)
{
    twice(path, write_at);
}

static void begun(const char *path)
{
    twice(path, write_begun);
}

static void shared(const char *path)
{
    twice(path, write_shared);
}

static void ordered(const char *path)
{
    twice(path, write_ordered);
}

int main(int argc, char **argv)
{
    static const struct what all[] = {
        {"at", at}, {"begun", begun}, {"shared", shared}, {"ordered", ordered}};
    return late_main(argc, argv, MPI_THREAD_SINGLE, all, sizeof all / sizeof *all);
}
