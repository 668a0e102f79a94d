/* What both parts of a plan go by. */
#ifndef BRG_MOVE_PLAN_PARTS_H
#define BRG_MOVE_PLAN_PARTS_H

#include "move/plan.h"

/* One file's writes exclude each other in most file systems' clients, so a node needs one writer
 * to keep it busy and another to fetch the next window meanwhile. */
#define PLAN_NODE_WRITERS 2u
/* More clients than this at once are a burden to a file's servers. */
#define PLAN_CROWD 256u

/* Whether nodes would wait for each other if every rank wrote such runs by itself. */
static inline int plan_nodes_wait(const struct plan_place *place, uint64_t run,
                                  const struct plan_ranks *ranks)
{
    return ranks->n_nodes > 1 && run < place->lock_bytes;
}

#endif
