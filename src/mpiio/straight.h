/* Calls whose bytes lie together, in memory and in the file: most calls of most programs. They are
 * short, and many; nothing is walked, asked for or taken for them. */
#ifndef BRG_MPIIO_STRAIGHT_H
#define BRG_MPIIO_STRAIGHT_H

#include "mpiio/call.h"

/* 1: *run is all that the call moves, and *etypes where the file's pointer is before it. 0: it may
 * be another call, or one that MPI refuses. Local. */
int straight_run(struct file *file, const struct call *call, int64_t *etypes, struct io_part *run);

/* 0 and *moved, fewer bytes than the run's only where a file that is read ends; or -errno. */
int straight_move(struct io_store *store, int write, const struct io_part *run, uint64_t *moved,
                  struct brg_error *failure);

#endif
