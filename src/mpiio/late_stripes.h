/* Where the program, or who runs it, tells MPI how new files are to lie on their servers. MPI does
 * so as it makes a file, which is too late where one was made here. */
#ifndef BRG_MPIIO_LATE_STRIPES_H
#define BRG_MPIIO_LATE_STRIPES_H

#include "mpi/files.h"

/* Of this rank: whether MPI is to open a file, with this MPI_Info, and may make it. */
int late_stripes_asked(const struct mpi_files *mpi, mpi_handle info, int creates);

#endif
