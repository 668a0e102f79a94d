/* Which MPI brigade-stage starts, and what makes its start cheap. */
#ifndef BRG_STAGE_MPI_H
#define BRG_STAGE_MPI_H

#include "brigade/error.h"
#include "mpi/mpi.h"

/* Loads MPI and starts it. `path` is a library, "none" for one process without MPI, or NULL to
 * guess from the launcher's environment. Must be called before there are threads; at most once.
 * 0, or -errno: -ENOENT no library, -ENOSYS not an MPI that is known here, -EPROTO the launcher
 * started several processes and this library does not see them. */
int mpi_start(const char *path, struct stream_net **net, struct brg_error *err);

#endif
