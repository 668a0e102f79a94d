/* Communicators with ranks of other jobs: MPI_Comm_spawn and its kin. Those may have no library of
 * ours, and would not come to a meeting. */
#ifndef BRG_MPIIO_MERGED_H
#define BRG_MPIIO_MERGED_H

#include "mpi/files.h"

/* Whether all ranks of a communicator are of MPI_COMM_WORLD, so that all have this library or none;
 * the same on all of them. Local. */
int merged_none(const struct mpi_files *mpi, mpi_handle comm);

#endif
