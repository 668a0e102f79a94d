/* What the wrappers of C's and of Fortran's names share. */
#ifndef BRG_IO_PMPI_INSIDE_H
#define BRG_IO_PMPI_INSIDE_H

#include "drain/pmpi.h"
#include "mpi/next.h"

typedef uintptr_t word;

enum pmpi_kind {
    KIND_NONE,
    KIND_BARRIER,
    KIND_BCAST,
    KIND_REDUCE,
    KIND_ALLREDUCE,
    KIND_SCAN,
    KIND_EXSCAN,
    KIND_REDUCE_SCATTER,
    KIND_REDUCE_SCATTER_BLOCK,
    KIND_GATHER,
    KIND_SCATTER,
    KIND_ALLGATHER,
    KIND_ALLGATHERV,
    KIND_ALLTOALL,
    KIND_ALLTOALLV,
    KIND_WAIT,
    KIND_WAITALL
};

/* A call that is being timed. */
struct pmpi_visit {
    double began;
    unsigned long changes;
    int outer; /* not inside another call */
};

struct pmpi_visit pmpi_enter(void);
/* `bytes` is what one rank gives; 0 where that is not told apart. */
void pmpi_leave(const struct pmpi_visit *visit, enum pmpi_kind kind, uintptr_t communicator,
                uint64_t bytes);

#endif
