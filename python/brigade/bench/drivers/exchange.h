/* What a benchmark's program is told by its command, and what it tells it. */
#ifndef BENCH_EXCHANGE_H
#define BENCH_EXCHANGE_H

#include <mpi.h>

/* The contents of rank 0's file, on all ranks, to be freed; NULL on all if it cannot be read: a node
 * need not see it. Collective over MPI_COMM_WORLD. */
char *exchange_schedule(const char *path);

/* Text as JSON, on standard output. */
void exchange_text(const char *text);

#endif
