/* A net whose ranks stand in another order than those of the one that carries it. */
#ifndef BRG_STREAM_PLACED_H
#define BRG_STREAM_PLACED_H

#include "stream/net.h"

/* On the new net, rank i is rank order[i] of `inner`. order is a permutation of inner->size ranks
 * with order[0] == 0 (what is gathered arrives there, in the order of inner); it is copied.
 * `finish` and
 * `abort` are inner's. 0, -EINVAL or -ENOMEM. */
int placed_create(struct stream_net *inner, const uint32_t *order, struct stream_net **out);

/* Frees what placed_create made; nothing may be under way. Inner stays as it is. */
void placed_destroy(struct stream_net *net);

#endif
