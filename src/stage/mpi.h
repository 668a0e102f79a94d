/* MPI as a stream_net, loaded at run time: this program links none.
 *
 * Two binary interfaces cover the field. In Open MPI's, handles are addresses of objects that the
 * library exports; in MPICH's (MPICH, Intel MPI, MVAPICH, Cray MPICH) they are fixed integers.
 * Which one a library speaks is read off its symbols. Only non-blocking calls are used, so that
 * waiting is our own affair: it sleeps, and hears signals.
 */
#ifndef BRG_STAGE_MPI_H
#define BRG_STAGE_MPI_H

#include "brigade/error.h"
#include "stream/net.h"

/* Loads MPI and starts it. `path` is a library, "none" for one process without MPI, or NULL to
 * guess from the launcher's environment. Must be called before there are threads; at most once.
 * 0, or -errno: -ENOENT no library, -ENOSYS not an MPI that is known here, -EPROTO the launcher
 * started several processes and this library does not see them. */
int mpi_start(const char *path, struct stream_net **net, struct brg_error *err);

/* One process and no messages. Never fails. */
struct stream_net *net_single(void);

/* The two interfaces. `library` is a handle of dlopen. */
int mpi_openmpi_start(void *library, struct stream_net **net, struct brg_error *err);
int mpi_mpich_start(void *library, struct stream_net **net, struct brg_error *err);

#endif
