/* What libbrigade_pmpi.so offers to libbrigade_io, which looks for it when it runs and does without
 * where it is not. Local calls, from any thread. */
#ifndef BRG_IO_PMPI_H
#define BRG_IO_PMPI_H

#include "brigade/error.h"
#include "io/watch.h"

/* One more file (+1) is written behind the program's back, or one less (-1). */
BRG_API void brg_pmpi_busy(int change);

/* What the program's calls have taken while one was. */
BRG_API void brg_pmpi_sums(struct watch_sums *sums);

#endif
