/* The ranks that a file was opened on, in a communicator of our own: the program may free its own
 * while the file is open. Files of the same ranks share one, and with it a world, which costs
 * messages and memory to make; where several threads may call MPI at a time each file has its own,
 * as their calls may then come in another order on another rank. */
#ifndef BRG_MPIIO_GROUP_H
#define BRG_MPIIO_GROUP_H

#include "mpi/files.h"

struct group {
    mpi_handle comm;
    unsigned users;
    struct group *next;
};

/* Collective over `comm`; NULL on every rank: MPI cannot copy it. */
struct group *group_take(const struct mpi_interface *mpi, mpi_handle comm);

/* Collective. Those of MPI_COMM_WORLD's and MPI_COMM_SELF's ranks stay until group_end. */
void group_give(const struct mpi_interface *mpi, struct group *group);

/* Collective over MPI_COMM_WORLD: MPI is about to end. */
void group_end(const struct mpi_interface *mpi);

#endif
