/* A few bytes of each rank, where ranks are on several nodes: they are carried to rank 0, which
 * writes them, when the ranks have met for the call. That takes no agreement about windows, and one
 * message of each node.
 *
 * Every rank puts what it asks for into its box, which lies in its node's area, and says in the
 * meeting whether it fitted. If all did, the leaders bring their nodes' boxes to that of rank 0 as
 * the meeting ends, and rank 0 writes what is in them: of a byte in several, the highest rank's.
 *
 * Boxes are at the end of the area's room, which no call uses when ranks meet. There are two sets,
 * by turns: while rank 0 empties one, others may fill the next. */
#ifndef BRG_IO_CARRY_H
#define BRG_IO_CARRY_H

#include "move/move.h"

/* With more nodes, all of them sending to one takes longer than agreeing. */
#define CARRY_MOST_NODES 32u

/* Every rank, before each meeting in which bytes may be carried: 1, or 0 where its own are too
 * many. Then nobody's are. Local. */
int carry_put(struct io_world *world, const struct io_request *request);

/* In `alone` of that meeting, on every node: 0 or -errno of the net. */
int carry_bring(struct io_world *world);

/* Then, after that meeting and before the next that may carry, rank 0: writes all of it. Runs begin
 * and end on a multiple of 1 << grain. 0 or -errno with *err. Local. */
int carry_write(const struct io_call *call, uint32_t grain, struct brg_error *err);

#endif
