/* Short runs of ranks that overlap: many windows, few slots, and a writer that has bytes of the
 * first window only.
 *
 *   serving PATH
 *
 * Rank 0 writes a run at the beginning, every other rank runs of 1 KiB all over 8 MiB, the same
 * ones. Prints how many bytes of the file are not the highest rank's, where that wrote. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "brigade/io.h"

#define RUN 1024u
#define PITCH 1536u
#define RUNS 5461u

int main(int argc, char **argv)
{
    int rank, size, rc;
    struct brg_error err = {0};
    brg_file *f;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    size_t n = rank ? RUNS : 1, wrong = 0;
    brg_piece *pieces = calloc(n, sizeof *pieces);
    char *buf = malloc(n * RUN);
    for (size_t i = 0; i < n; i++)
        pieces[i] = (brg_piece){.offset = i * PITCH, .bytes = RUN};
    memset(buf, 'a' + rank, n * RUN);
    rc = brg_file_open(MPI_COMM_WORLD, argv[1], BRG_WRITE | BRG_CREATE, "sync=no", &f, &err);
    for (int call = 0; call < 2; call++)
        rc = rc ? rc : brg_file_write_pieces(f, pieces, n, buf, &err);
    rc = rc ? rc : brg_file_commit(f, &err);
    rc = rc ? rc : brg_file_close(f, &err);
    if (rc) {
        printf("rank %d: %d %s\n", rank, rc, err.text);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    FILE *in = rank == 0 ? fopen(argv[1], "rb") : NULL;
    int byte;
    for (size_t at = 0; in && (byte = getc(in)) != EOF; at++)
        wrong += at % PITCH < RUN && byte != 'a' + size - 1;
    if (rank == 0)
        printf("%zu\n", wrong);
    MPI_Finalize();
    return 0;
}
