/* Who writes which windows of a call: arithmetic only, the same on every rank. */
#ifndef BRG_IO_PLAN_H
#define BRG_IO_PLAN_H

#include "io/hints.h"

#define PLAN_MAX_WRITERS 1024u

/* What the ranks agreed on when they met for a call. */
struct io_extent {
    uint64_t low, high;   /* hull of all bytes: [low, high) */
    uint64_t bytes;       /* sum over the ranks */
    uint64_t most, least; /* bytes of the rank with most, with least among those with any */
    uint64_t longest_run; /* the least, over ranks with bytes, of their mean run */
    uint32_t ranks;       /* ranks with bytes */
    int disjoint;         /* the ranks' hulls do not overlap */
};

struct io_plan {
    enum io_transport transport; /* never IO_AUTO */
    uint64_t window_bytes;       /* a power of two, divides stripe_bytes or is a multiple of it */
    uint64_t stripe_bytes;
    uint32_t n_writers;                   /* == domains */
    uint32_t writers[PLAN_MAX_WRITERS];   /* rank of the writer of each domain */
    uint64_t first[PLAN_MAX_WRITERS + 1]; /* first window of each domain; [n_writers] is the end */
    char reason[256];                     /* why this transport, for people */
};

/* Windows are numbered from the beginning of the file: window w holds bytes [w * window_bytes,
 * (w + 1) * window_bytes). */
static inline uint64_t plan_window(const struct io_plan *plan, uint64_t offset)
{
    return offset / plan->window_bytes;
}

/* The domain of a window between first[0] and first[n_writers]. */
uint32_t plan_domain(const struct io_plan *plan, uint64_t window);

#endif
