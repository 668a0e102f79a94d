/* Some ranks of a net as a net of their own, numbered anew. Making one asks nobody: no communicator
 * is made, and all it does is messages between two on the net beneath, under one tag that is
 * nobody else's there. (MPI_Comm_split of 16 ranks on two processors took a tenth of a second.)
 *
 * Collective calls take as many steps, one after another, as the logarithm (base 2) of the number
 * of ranks, and one message of each rank a step: dissemination (Hensgen, Finkel, Manber 1988) and,
 * for gathering, its form by Bruck et al. (1997). One at a time. There is no gather to rank 0,
 * no abort and no finish. */
#ifndef BRG_STREAM_GROUP_H
#define BRG_STREAM_GROUP_H

#include "stream/net.h"

/* One of nobody yet, in whose minima at most `most_values` values go. NULL: no memory. */
struct stream_net *group_new(int most_values);

/* Not collective; again, when nothing is under way. This rank is ranks[rank] of `of`; both must
 * outlive the group. */
void group_set(struct stream_net *group, struct stream_net *of, const uint32_t *ranks,
               uint32_t size, uint32_t rank, int tag);

/* Collective. `bytes` bytes of each rank, in order, come to be in everybody's `all`; this rank's
 * lie in their place there. */
int group_gather_all(struct stream_net *group, void *all, size_t bytes,
                     struct stream_request *request);

/* Collective: minimum and broadcast in as many steps as one of them takes. least[i], of n values,
 * becomes the smallest of all ranks; least[n] is the group's own; and the bytes of rank `root` that
 * begin at least[n + 1] arrive in everybody's. All of it is at most as long as the most values that
 * the group takes. */
int group_share(struct stream_net *group, int64_t *least, int n, size_t bytes, uint32_t root,
                struct stream_request *request);

/* Nothing may be under way. NULL: nothing. */
void group_free(struct stream_net *group);

#endif
