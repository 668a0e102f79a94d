/* mpi.h for brigade-land, the stager that needs nothing on its node: there is no MPI. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "stage/mpi.h"

int mpi_start(const char *path, struct stream_net **net, struct brg_error *err)
{
    if (!path || strcmp(path, "none") != 0)
        return brg_error_set(err, -ENOSYS, "brigade-land knows no MPI: it stages with --mpi none");
    *net = net_single();
    return 0;
}
