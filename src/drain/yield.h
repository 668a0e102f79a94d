/* What is known of the program's own collective calls; nothing where libbrigade_pmpi.so is not in
 * the process. Local, from any thread. */
#ifndef BRG_IO_YIELD_H
#define BRG_IO_YIELD_H

#include "drain/watch.h"

/* A file begins (+1) or ends (-1) to be written behind the program's back. */
void yield_busy(int change);

/* A piece goes now (1), or has gone (0). */
void yield_piece(int going);

/* The calling thread is in a collective call of ours now (1), or no longer (0). */
void yield_ours(int inside);

/* Whether the calls are watched. */
int yield_known(void);

/* *sums stay zero where nothing is known. */
void yield_sums(struct watch_sums *sums);

/* *place stays zero where nothing is known. */
void yield_place(struct watch_place *place);

#endif
