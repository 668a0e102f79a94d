/* One call of the program that moves bytes, done here. */
#ifndef BRG_MPIIO_CALL_H
#define BRG_MPIIO_CALL_H

#include "mpiio/file.h"

/* No buffer begins below this: a null pointer is left to MPI to complain about. */
#define CALL_LOWEST_ADDRESS 4096

struct call {
    int write;
    int at;         /* 1: `offset` is given; 0: the individual pointer, which is moved */
    int64_t offset; /* etypes */
    char *buf;
    int64_t count;
    mpi_handle type;
    int is_too_long; /* no form of this MPI's takes so many: what is not done here is refused */
};

/* Collective over the file. 0: MPI shall do it, which all ranks agreed on, and nothing has been
 * done; 1: it is done, with *moved bytes of this rank's, and *code MPI's error class (0: success),
 * after the file's error handler was called. Where it is MPI's, but too long for MPI on a rank, it
 * is refused on all. */
int call_together(struct file *file, const struct call *call, uint64_t *moved, int *code);

/* Local. The same of an independent call, if its bytes do not lie together in memory or in the
 * file, and if it writes, in long runs; all others are MPI's. */
int call_alone(struct file *file, const struct call *call, uint64_t *moved, int *code);
/* The same of any request, run by run: nothing else is written. */
int call_at_once(struct file *file, const struct call *call, uint64_t *moved, int *code);

#endif
