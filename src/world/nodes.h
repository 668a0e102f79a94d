/* Which ranks are on the same node, and in which order the nodes stand. */
#ifndef BRG_IO_NODES_H
#define BRG_IO_NODES_H

#include <stdint.h>

#include "stream/order.h"

/* What a rank tells rank 0 of itself. Ranks of the same `place` are on one node; 0 is on a node of
 * its own. */
struct node_mark {
    uint64_t place;
    int32_t code;                      /* -errno of what the rank lacks, or 0 */
    char address[ORDER_ADDRESS_BYTES]; /* of the node, stream/address.h, or "" */
};

/* The kernel, the names and process numbers that this process sees, and its /dev/shm: where these
 * are the same, processes may expect to reach each other's memory. Never 0. */
void node_mark_self(struct node_mark *mark);

/* node_of[rank] for every rank: nodes along the topology, or else by their first ranks. Pure.
 * Returns the number of nodes, or -ENOMEM. */
int64_t nodes_number(const struct node_mark *marks, uint32_t size, uint32_t *node_of);

#endif
