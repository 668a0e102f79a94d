/* What libbrigade_pmpi.so offers to libbrigade_io, which looks for it when it runs and does without
 * where it is not. Local calls, from any thread. */
#ifndef BRG_IO_PMPI_H
#define BRG_IO_PMPI_H

#include "brigade/error.h"
#include "drain/watch.h"

/* One more file (+1) is written behind the program's back, or one less (-1). */
BRG_API void brg_pmpi_busy(int change);

/* A piece goes to the file system from here now (1), or has gone (0). Calls of a rank that writes
 * tell what is to be expected even while a file is written, where they begin PMPI_QUIET_S after its
 * last piece: what is slow then is so for reasons of its own. */
BRG_API void brg_pmpi_piece(int going);
#define PMPI_QUIET_S 0.1

/* What the program's calls have taken while one was. */
BRG_API void brg_pmpi_sums(struct watch_sums *sums);

/* This thread is in a collective call of Brigade's own now (1), or no longer (0): pieces shall not
 * be in its way either, and the program computes from its end. */
BRG_API void brg_pmpi_ours(int inside);

/* Whether the program is in a call now, and if not for how long it has not been and will not be. */
BRG_API void brg_pmpi_place(struct watch_place *place);

#endif
