/* Twins of a template: copies of it that serve beside it, from one socket.
 *
 * A fork of a large process takes as long as its page tables are long (10 ms where PyTorch is
 * imported), and a process forks one rank at a time. Twins do it side by side, on as many
 * processors as there are. Each is a child of the template, and ranks are children of the one that
 * forked them: none survives what it was forked from.
 *
 * What must stay true: each takes from the socket only whom it is about to serve, so that all find
 * work; how many rank processes came is counted by all together; the template ends last.
 */
#ifndef BRG_FORK_TWINS_H
#define BRG_FORK_TWINS_H

#include <stdint.h>

enum {
    TWINS_MOST = 31,
    TWINS_RANKS = 8 /* of a node, for each that serves: fewer are forked before there is a twin */
};

struct twins {
    struct twins_shared *shared; /* NULL: the template serves alone */
    uint32_t me;                 /* 0: the template */
    uint32_t n, alive;           /* of the template: ever forked, not ended */
    uint32_t seen;               /* rank processes that came, where it serves alone */
    int all;                     /* an eventfd that can be read when all have come; -1 */
};

/* How many are worth forking for so many ranks of a node (0: not known) on so many processors. */
uint32_t twins_wanted(int ranks, uint64_t processors);

/* Before the first is forked. 0 or -errno: then it serves alone. */
int twins_begin(struct twins *t);

/* In the template: another one. In the twin itself: that it is the last that was told of. */
void twins_add(struct twins *t);
void twins_become(struct twins *t);

/* Another rank process came. Wakes all if that is `expected` of them (0: not known). */
void twins_saw(struct twins *t, int expected);
uint32_t twins_seen(const struct twins *t);

/* What ranks share, in bytes, of this process's and of all. */
uint64_t twins_saved(struct twins *t, uint64_t bytes);

#endif
