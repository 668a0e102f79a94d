/* Seconds by one clock for all nodes, of programs that compare when ranks began and ended. */
#ifndef BENCH_CLOCK_H
#define BENCH_CLOCK_H

#include <mpi.h>

/* Collective, before the first now(). */
void clock_agree(MPI_Comm comm);
double now(void);

#endif
