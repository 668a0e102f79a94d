/* A rank's bytes, moved before the ranks have met for the call: where all could, one meeting is all
 * that the call takes. */
#ifndef BRG_IO_EARLY_H
#define BRG_IO_EARLY_H

#include "move/move.h"

#define EARLY_MOST_RANKS 256u

/* Moves the run of a request that is one. Local: the call's plan is not looked at.
 * 0, or -errno with *err. */
int early_write(const struct io_call *call, const struct io_part *run, struct brg_error *err);
int early_read(const struct io_call *call, const struct io_part *run, struct brg_error *err);

/* What one rank has written: bytes [low, high), and the blocks [from, until) that these and its
 * stream of checksums lie in, in bytes. Of nothing both are the same. */
struct early_claim {
    uint64_t low, high, from, until;
};

/* Whether no two of n <= EARLY_MOST_RANKS ranks have written the same byte. Then shares[i] says
 * whether rank i's blocks are another's as well. Pure. */
int early_judge(const struct early_claim *claims, uint32_t n, unsigned char *shares);

#endif
