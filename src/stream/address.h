/* Where a node stands on the machine, as Slurm's environment says it. */
#ifndef BRG_STREAM_ADDRESS_H
#define BRG_STREAM_ADDRESS_H

#include <stdint.h>

#include "stream/order.h"

/* This node's address (SLURM_TOPOLOGY_ADDR: "spine.leaf.node", its own name behind the last dot)
 * into ORDER_ADDRESS_BYTES of `address`; "" where it is not known. */
void address_of_slurm(char *address);

/* order_by_address for such addresses; their own names are cut off. -ENOENT, with order undefined,
 * unless all have one and all differ: those of two nodes alike came along with the environment of
 * one of them. */
int address_order(char *addresses, uint32_t n, uint32_t *order);

#endif
