/* Rank 0 leaves a large message under way and comes to a collective write; rank 1 comes there after
 * it has received that message: which needs rank 0 to let MPI move on while it waits.
 *
 *   under_way PATH */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "brigade/io.h"

#define BYTES (8 << 20)

int main(int argc, char **argv)
{
    int rank;
    struct brg_error err = {0};
    MPI_Request request;
    char *message = calloc(1, BYTES);
    brg_file *f;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int rc = brg_file_open(MPI_COMM_WORLD, argv[1], BRG_WRITE | BRG_CREATE, "sync=no", &f, &err);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Isend(message, BYTES, MPI_BYTE, 1, 5, MPI_COMM_WORLD, &request);
    if (rank == 1)
        MPI_Recv(message, BYTES, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    rc = rc ? rc : brg_file_write(f, (uint64_t)rank * 100, message, 100, &err);
    if (rank == 0)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    rc = rc ? rc : brg_file_commit(f, &err);
    rc = rc ? rc : brg_file_close(f, &err);
    printf("%d %s\n", rc, rc ? err.text : "");
    MPI_Finalize();
    return rc != 0;
}
