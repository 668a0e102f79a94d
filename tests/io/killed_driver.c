/* Ranks write a file in turns and at once, while one of them is killed by BRIGADE_FAULT. Each that
 * lives writes what it was told, and after how long, into FOLDER/told.RANK:
 *     code failed-rank offset seconds path
 * and leaves without MPI_Finalize, which would wait for the dead. SIGALRM ends one that hangs.
 *
 * killed_driver FOLDER write|overlap|read|fork HINTS BYTES [SLEEPER]: with fork each rank forks a
 * process, once it has the file open, that does nothing and outlives it, and writes; SLEEPER: this
 * rank computes for long (many looks at whether it lives) before it goes on, while the others wait
 * for it */
#include <mpi.h>

#include "brigade/io.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CALLS 3
#define PIECE 1024u
#define OVERLAP 64u /* of each piece with the next one, which is another rank's */
#define HANGS_S 30
#define OUTLIVES_S 10 /* longer than survivors may take to be told */
#define LONG_US 400000

static int rank, size, forks;
static unsigned more; /* bytes of a piece that are the next one's, too */
static struct brg_error err = {.rank = -1, .offset = -1};

/* Pieces of all ranks lie in turns: every window is everybody's. */
static int move(brg_file *f, int call, char *buf, size_t bytes, int reading)
{
    size_t n = bytes / (PIECE + more);
    brg_piece *pieces = malloc(n * sizeof *pieces);
    for (size_t i = 0; i < n; i++)
        pieces[i] =
            (brg_piece){.offset = (((size_t)call * n + i) * (size_t)size + (size_t)rank) * PIECE,
                        .bytes = PIECE + more};
    int rc = reading ? brg_file_read_pieces(f, pieces, n, buf, &err)
                     : brg_file_write_pieces(f, pieces, n, buf, &err);
    free(pieces);
    return rc;
}

static int run(const char *path, int reading, const char *hints, size_t bytes, int sleeper)
{
    brg_file *f;
    unsigned flags = reading ? BRG_READ : BRG_WRITE | BRG_CREATE;
    char *buf = calloc(1, bytes);
    int rc = brg_file_open(MPI_COMM_WORLD, path, flags, hints, &f, &err);
    if (!rc && forks && fork() == 0) {
        for (int fd = 0; fd < 3; fd++)
            close(fd);
        sleep(OUTLIVES_S);
        _exit(0);
    }
    for (int call = 0; !rc && call < CALLS; call++) {
        if (rank == sleeper && call == 1)
            usleep(LONG_US);
        rc = move(f, call, buf, bytes, reading);
    }
    if (!rc && !reading)
        rc = brg_file_commit(f, &err);
    return rc;
}

int main(int argc, char **argv)
{
    char path[4096], told[4096];
    int provided;
    alarm(HANGS_S);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime();
    snprintf(path, sizeof path, "%s/data", argv[1]);
    more = strcmp(argv[2], "overlap") == 0 ? OVERLAP : 0;
    forks = strcmp(argv[2], "fork") == 0;
    int rc = run(path, strcmp(argv[2], "read") == 0, argv[3], strtoull(argv[4], NULL, 10),
                 argc > 5 ? atoi(argv[5]) : -1);
    snprintf(told, sizeof told, "%s/told.%d", argv[1], rank);
    snprintf(path, sizeof path, "%s/new.%d", argv[1], rank);
    FILE *out = fopen(path, "w");
    fprintf(out, "%d %d %lld %.3f %s\n", rc, err.rank, (long long)err.offset, MPI_Wtime() - began,
            err.path);
    fclose(out);
    rename(path, told);
    if (rc == 0)
        MPI_Finalize();
    _exit(0);
}
