/* Writes FILES files of 2 * 8 MiB one after another and tells what was chosen for each. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "brigade/io.h"

#define FILES 4
#define BYTES (8u << 20)

int main(int argc, char **argv)
{
    int rank, rc = 0;
    struct brg_error err = {0};
    char *bytes = calloc(1, BYTES);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < FILES && !rc; i++) {
        brg_file *f;
        rc = brg_file_open(MPI_COMM_WORLD, argv[1], BRG_WRITE | BRG_CREATE, "sync=no", &f, &err);
        if (rc)
            break;
        rc = brg_file_write(f, (uint64_t)rank * BYTES, bytes, BYTES, &err);
        rc = rc ? rc : brg_file_commit(f, &err);
        if (rank == 0)
            printf("%.100s\n", brg_file_explain(f));
        brg_file_close(f, NULL);
    }
    if (rc)
        printf("rank %d: %s\n", rank, err.text);
    MPI_Finalize();
    free(bytes);
    return rc != 0;
}
