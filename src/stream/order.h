/* In which order nodes stand in the ring, so that neighbours there are neighbours on the machine.
 *
 * A node's address names the switches above it, from the top down, parted by dots: "spine0.leaf3".
 * The order visits the tree of switches depth first: all nodes of a switch stand together, at
 * every level, so the ring enters each switch once and leaves it once, and no ring does with less.
 * Among switches the one with the lowest rank comes first, among nodes of a switch the lower rank:
 * rank 0 stays at place 0, and ranks that are in a good order already stay where they are.
 * Arithmetic only.
 */
#ifndef BRG_STREAM_ORDER_H
#define BRG_STREAM_ORDER_H

#include <stdint.h>

#define ORDER_ADDRESS_BYTES 192u /* with the NUL */
#define ORDER_LEVELS 8u          /* what lies deeper counts as one */

/* `addresses`: that of rank i at i * ORDER_ADDRESS_BYTES. order[place] becomes a rank. 0, or
 * -ENOMEM with order undefined. */
int order_by_address(const char *addresses, uint32_t n, uint32_t *order);

/* Links of the ring between nodes that do not share all switches down to `level` (1: the top ones).
 * With n below 2 there is no link. */
uint32_t order_crossings(const char *addresses, const uint32_t *order, uint32_t n, uint32_t level);

#endif
