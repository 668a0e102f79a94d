/* What all ranks do together with a file that MPI has not opened together (late.h). */
#ifndef BRG_MPIIO_LATE_ALL_H
#define BRG_MPIIO_LATE_ALL_H

#include "mpiio/late.h"

/* Collective, of one that is apart; no rank goes on before it is done. */

/* 1: it has so many bytes; 0: MPI shall do it, and say what is wrong. */
int late_set_size(struct file *file, int64_t bytes);

/* 1: what was written is on its disk, or *code says the same on all ranks why not: who asks for it
 * once more might not hear of it again; 0: MPI shall do it. */
int late_sync(struct file *file, int *code);

#endif
