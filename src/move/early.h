/* A rank's bytes, moved before the ranks have met for the call: where all could, one meeting is all
 * that the call takes. */
#ifndef BRG_IO_EARLY_H
#define BRG_IO_EARLY_H

#include "move/move.h"
#include "move/plan_own.h"

#define EARLY_MOST_RANKS 256u

/* All that a rank moves in a call. */
struct early {
    struct io_store *store;
    const struct io_request *request;
    uint32_t rank;
    struct plan_share share; /* what it is like: writes is given, early_may finds out the rest */
    int reads_on;            /* plan_reads_on, when the ranks have met */
};

/* Whether it may move it so. Local: of several runs it looks whether the file is in memory, for
 * which it is opened. */
int early_may(struct early *early, const struct io_hints *hints, const struct plan_place *place,
              const struct plan_ranks *ranks);
/* Then: 0 and *moved bytes, fewer than there are only where the file that is read ends; or -errno
 * with *err. Local. */
int early_move(const struct early *early, uint64_t *moved, struct brg_error *err);

/* Where some could not, each may move its own by itself when they have met: what a rank says of
 * what it has left (after early_may; early NULL: nothing), the least of all ranks' of each value,
 * and whether they do. Then early_move, and an agreement. Or extent->readers says that so
 * many ranks read all of it. */
enum early_left {
    LEFT_STRETCHES,
    LEFT_RUNS,
    LEFT_LENGTH,
    LEFT_PITCH,
    LEFT_WHERE,
    LEFT_VALUES
};
void early_say_left(const struct early *early, int64_t values[LEFT_VALUES]);
int early_is_scattered(struct early *early, const int64_t least[LEFT_VALUES],
                       const struct io_hints *hints, const struct plan_place *place,
                       struct io_extent *extent, const struct plan_ranks *ranks);

/* What one rank has written: bytes [low, high), and the blocks [from, until) that these and its
 * stream of checksums lie in, in bytes. Of nothing both are the same. */
struct early_claim {
    uint64_t low, high, from, until;
};

/* Whether no two of n <= EARLY_MOST_RANKS ranks have written the same byte. Then shares[i] says
 * whether rank i's blocks are another's as well. Pure. */
int early_judge(const struct early_claim *claims, uint32_t n, unsigned char *shares);

/* Whether these bytes, no two of which are the same, lie next to each other. Pure. */
int early_is_dense(const struct early_claim *claims, uint32_t n);

#endif
