/* Which ranks share a node, and the memory they share: how a world comes to be. */
#ifndef BRG_IO_WORLD_JOIN_H
#define BRG_IO_WORLD_JOIN_H

#include "world/world.h"

/* Bytes of the room of a node's area. */
static inline size_t world_room_bytes(const struct io_world *w)
{
    return (size_t)w->segment_bytes * 2;
}

/* Tables for w->size ranks. 0 or -ENOMEM. */
int world_alloc(struct io_world *w);

/* Collective over w->all, before world_join: everybody takes over rank 0's share and segment_bytes,
 * and learns whether all are on one node, of which rank 0 has made the area then. `code` is what
 * this rank has failed with so far, or 0. 0, or the least code of all. */
int world_introduce(struct io_world *w, int code);

/* The tables that follow from node_of. */
void world_fill(struct io_world *w);

/* Collective over w->all: finds the nodes, makes the area of each, and connects their leaders.
 * 0, or -errno that is the same on all ranks, unless one has died. */
int world_join(struct io_world *w);

/* Of an area: a death is seen from when there is one. */
int world_is_broken(const struct io_world *w);

#endif
