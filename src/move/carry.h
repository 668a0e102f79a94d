/* A few bytes of each rank, where ranks are on several nodes: what is written is carried to rank 0,
 * which writes it, and what is read is carried from there, as the ranks meet for the call. That
 * takes no agreement about windows, and one message of each node.
 *
 * Writing, every rank puts what it asks for into its box, which lies in its node's area, and says
 * in the meeting whether it fits. If all do, the leaders bring their nodes' boxes to that of rank 0
 * as the meeting ends, and rank 0 writes what is in them: of a byte in several, the highest rank's.
 * Boxes are at the end of the area's room, which no call uses when ranks meet. A rank on rank 0's
 * node that puts again waits until rank 0 has emptied them.
 *
 * Reading, rank 0 reads as the meeting ends, and all of it comes to every node. */
#ifndef BRG_IO_CARRY_H
#define BRG_IO_CARRY_H

#include "move/move.h"

/* With more nodes, all of them sending to one takes longer than agreeing. */
#define CARRY_MOST_NODES 32u

enum carry_load { /* the least of all ranks' counts */
    CARRY_TOO_MUCH,
    CARRY_MUCH, /* it pays where rank 0 would write all of it in any case */
    CARRY_LITTLE
};

/* Every rank, before each meeting in which bytes may be carried; with `much` what has room may be
 * more than a little. Local. */
enum carry_load carry_put(struct io_world *world, const struct io_request *request, int much);

/* If all is carried: in `alone` of that meeting, on every node. 0 or -errno of the net. */
int carry_bring(struct io_world *world);

/* Then, too: every rank, after that meeting and before the next that may carry. Rank 0 writes all
 * of it. Runs begin and end on a multiple of 1 << grain. 0 or -errno with *err. Local. */
int carry_write(const struct io_call *call, uint32_t grain, struct brg_error *err);

/* Reading: whether rank 0 reads all that lies between the first and the last byte of a call, and
 * all ranks take theirs from it; the same everywhere. */
int carry_reads(const struct io_world *world, uint64_t low, uint64_t high);

/* Then, in `alone` of the meeting, on every node: 0 or -errno of the net. */
int carry_spread(const struct io_call *call, uint64_t low, uint64_t high, struct brg_error *err);

/* Then, after that meeting and before the next: every rank. 0, or what rank 0 failed with, whose
 * *err of carry_spread says more. Local. */
int carry_take(const struct io_call *call, uint64_t low);

#endif
