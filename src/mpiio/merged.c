/* See merged.h. Ranks of several worlds are in one communicator only if an intercommunicator was
 * merged, and this rank has taken part in it, or is in none of these. Looking costs something: it
 * is done only where this rank has merged one. */
#include "mpiio/merged.h"

#include <stdatomic.h>

#include "mpiio/hooks.h"

static atomic_int merged;

typedef int merge_call(word comm, word high, void *out);

static int do_merge(merge_call *next, word comm, word high, void *out)
{
    merged = 1;
    return next(comm, high, out);
}

HOOK(merge_call, Intercomm_merge, (word comm, word high, void *out),
     do_merge(next, comm, high, out))

int merged_none(const struct mpi_files *mpi, mpi_handle comm)
{
    return !merged || mpi->is_of_world(comm);
}
