/* The ranks that a file was opened on, in a communicator of our own: the program may free its own
 * while the file is open. Files of the same ranks share one, and with it a world, which costs
 * messages and memory to make; where several threads may call MPI at a time each file has its own,
 * as their calls may then come in another order on another rank. */
#ifndef BRG_MPIIO_GROUP_H
#define BRG_MPIIO_GROUP_H

#include "mpi/files.h"
#include "world/world.h"

struct group {
    mpi_handle comm;
    int is_used; /* a world has been asked for */
    unsigned users;
    struct group *next;
};

/* The world that files of the ranks of `comm` have made and that is still there, the same on all of
 * them; or NULL. Local. */
struct io_world *group_world(const struct mpi_interface *mpi, mpi_handle comm);

/* Collective over `comm`; NULL on every rank: MPI cannot copy it. */
struct group *group_take(const struct mpi_interface *mpi, mpi_handle comm);

/* Collective. Those of MPI_COMM_WORLD's and MPI_COMM_SELF's ranks stay until group_end. */
void group_give(const struct mpi_interface *mpi, struct group *group);

/* Collective over MPI_COMM_WORLD: MPI is about to end. */
void group_end(const struct mpi_interface *mpi);

#endif
