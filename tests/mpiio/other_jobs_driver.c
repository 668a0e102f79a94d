/* Files of communicators that are not of this job alone, FILE WHAT, and a line of each rank:
 *   inter   an intercommunicator, which MPI refuses
 *   merged  ranks of this job, and two that it spawns, which are told of no library */
#include "late_driver.h"

static void inter(const char *path)
{
    MPI_Comm half, both;
    MPI_File f = MPI_FILE_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 5, &both);
    MPI_Comm_set_errhandler(both, MPI_ERRORS_RETURN);
    say("class", class_of(MPI_File_open(both, path, FOR_ALL, MPI_INFO_NULL, &f)));
    say("none", f == MPI_FILE_NULL);
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
}

/* Each rank writes, and reads what the next one wrote. */
static void files_of(MPI_Comm all, const char *path)
{
    int n, of, got;
    MPI_File f;
    MPI_Comm_rank(all, &n);
    MPI_Comm_size(all, &of);
    for (int i = 0; i < 3; i++) {
        int at = i * of * 4, right = 100 * i + (n + 1) % of, mine = 100 * i + n;
        if (MPI_File_open(all, path, FOR_ALL, MPI_INFO_NULL, &f))
            MPI_Abort(MPI_COMM_WORLD, 1);
        MPI_File_write_at_all(f, at + n * 4, &mine, 1, MPI_INT, MPI_STATUS_IGNORE);
        MPI_File_sync(f);
        MPI_Barrier(all);
        MPI_File_read_at_all(f, at + (n + 1) % of * 4, &got, 1, MPI_INT, MPI_STATUS_IGNORE);
        say("right", got == right);
        MPI_File_close(&f);
    }
    say("of", of);
}

static void merged(const char *program, const char *path)
{
    MPI_Comm parent, to, all;
    char *words[] = {(char *)path, "merged", NULL};
    MPI_Comm_get_parent(&parent);
    to = parent;
    if (parent == MPI_COMM_NULL)
        MPI_Comm_spawn(program, words, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &to,
                       MPI_ERRCODES_IGNORE);
    MPI_Intercomm_merge(to, parent != MPI_COMM_NULL, &all);
    files_of(all, path);
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&to);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (strcmp(argv[2], "inter") == 0)
        inter(argv[1]);
    else
        merged(argv[0], argv[1]);
    printf("rank %d:%s\n", rank, line);
    MPI_Finalize();
    return 0;
}
