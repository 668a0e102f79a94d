/* What the ranks of a node need to know of each other in a call: who touches which windows, which
 * of these are tasks, and how far each slot is. It lies in the node's area:
 *
 *   struct board | turns | again | planes of every node | cells | tasks | slots: a bucket each
 *
 * A cell stands for a window: cell d * per_domain + i is window cursor[d] + i of domain d. Its
 * value counts the ranks of this node that touch the window, and when there is one only, says
 * which.
 * Nodes tell each other planes of bits: who touches a window; and who does so with one rank,
 * whose runs there are long. A window of which that is all is that rank's own. A third plane says
 * which windows are to be done once more.
 *
 * Where two ranks write the same byte, the highest one's stays: the ranks of a node then take turns
 * at each window, in their order, and where there are several nodes buckets have owner maps, for
 * which windows are done in parts.
 *
 * Outside a call all cells are 0. */
#ifndef BRG_IO_CLAIM_H
#define BRG_IO_CLAIM_H

#include "move/bucket.h"
#include "move/plan.h"
#include "move/request.h"
#include "world/world.h"

#define CLAIM_MAX_SLOTS 64u
/* Parts of a window whose buckets have owner maps, which take four bytes a grain. */
#define CLAIM_PARTS_SHIFT 3u
#define CLAIM_COARSE_SHIFT 1u /* of grains from CLAIM_COARSE_GRAIN on */
#define CLAIM_COARSE_GRAIN 2u

/* In shared memory. A slot's stage grows by STAGES with each task that it serves; a task t waits
 * for its slot to be at claims_base(t) + the stage. */
enum slot_stage {
    SLOT_OPEN,    /* its bucket is clear */
    SLOT_WANTED,  /* scatter, not at home: this node's ranks have marked what they want */
    SLOT_FILLED,  /* collect: this node's ranks have put theirs; scatter: its bytes are there */
    SLOT_ARRIVED, /* collect, at home: those of other nodes are there as well */
    SLOT_STAGES = 4
};

struct board {
    uint32_t n_tasks;
    _Atomic uint32_t failing; /* a rank of this node failed: nothing need be moved any more */
    _Atomic uint32_t again;   /* some bit of `again` is set */
    _Alignas(64) _Atomic uint32_t tickets;
    _Alignas(64) _Atomic uint32_t served;
    struct board_slot {
        _Alignas(64) _Atomic uint32_t stage;
        _Atomic uint32_t came; /* ranks of this node that are done with it at this stage */
    } slots[CLAIM_MAX_SLOTS];
};

/* One process's view. */
struct claims {
    struct io_world *world;
    const struct io_plan *plan;
    struct board *board;
    _Atomic uint32_t *turns; /* [n_local] the task that a rank is at, in a pass in turns */
    _Atomic uint32_t *cells;
    uint32_t *tasks; /* cells, in the order in which every node does them */
    _Atomic uint64_t *again;
    uint64_t *planes; /* [node][3][n_cells / 64] */
    char *slots;
    size_t slot_bytes;
    uint32_t n_cells, n_slots; /* n_slots without the spare, which is behind them */
    uint32_t per_domain;
    uint32_t grain; /* of buckets, those of parts too */
    uint32_t shift; /* a task is 1 << shift parts of a window, one after another */
    int in_turns;   /* this pass is */
    uint64_t cursor[PLAN_MAX_WRITERS];
};

/* The view for a call; cursors at the beginning. Local. The plan has windows. */
void claims_begin(struct claims *claims, struct io_world *world, const struct io_plan *plan);

/* Marks the windows that a request touches and that have cells. Local, any number of ranks at
 * once. long_bytes: what a run must have on average to be long. */
void claims_mark(struct claims *claims, const struct io_request *request, uint64_t long_bytes);

/* `alone` of the meeting that follows: nodes tell each other, tasks are listed, slots opened. */
int claims_list(void *claims, int64_t *least);
/* The pass that is listed next is in turns. */
void claims_take_turns(struct claims *claims);
/* As claims_list when windows are done once more, in turns, which the caller says afterwards. */
int claims_list_again(void *claims, int64_t *least);
/* `alone` of the meeting at the end: cells are 0 again. */
int claims_wipe(void *claims, int64_t *least);

/* The windows of this call that have no cells yet. */
int claims_are_left(const struct claims *claims);
/* next[d]: the first window of domain d that the request touches and that is left, or INT64_MAX. */
void claims_next(const struct claims *claims, const struct io_request *request, int64_t *next);
void claims_advance(struct claims *claims, const int64_t *next);

/* ---- after claims_list ---- */

/* The slots that this call uses are about to be touched, where runs are short by every rank of the
 * node. */
void claims_have(const struct claims *claims);

static inline uint64_t claims_window(const struct claims *c, uint32_t cell)
{
    return c->cursor[cell / c->per_domain] + cell % c->per_domain;
}

/* Ranks of this node that touch the window. */
static inline uint32_t claims_count(const struct claims *c, uint32_t cell)
{
    return atomic_load_explicit(&c->cells[cell], memory_order_relaxed) & 0x7fff;
}

/* Views of rooms that no task of this epoch uses: the one behind the slots, then slots. How many,
 * at least one, at most `most`. */
uint32_t claims_spares(const struct claims *claims, struct bucket *spares, uint32_t most);

/* Whether a window is its only rank's own; *local is that rank if it is on this node. */
int claims_own(const struct claims *claims, uint32_t cell, uint32_t *local);
/* Whether any rank but this one writes to [from, until) of the file in this epoch. */
int claims_others_write(const struct claims *claims, uint64_t from, uint64_t until);
/* Whether a node touches the window. */
int claims_touch(const struct claims *claims, uint32_t cell, uint32_t node);

static inline uint32_t claims_tasks(const struct claims *c)
{
    return c->board->n_tasks;
}

/* In turns: this rank has no part in tasks before `task` that is not done; and waits until no rank
 * before it has one in the task itself. 0, or as area_wait_unless. */
void claims_reach(const struct claims *claims, uint32_t task);
int claims_wait_turn(const struct claims *claims, uint32_t task);
/* Wakes who waits for a turn. */
void claims_wake_turns(const struct claims *claims);

static inline uint32_t claims_cell(const struct claims *c, uint32_t task)
{
    return c->tasks[task >> c->shift];
}

static inline uint32_t claims_home(const struct claims *c, uint32_t cell)
{
    return c->plan->writers[cell / c->per_domain];
}

static inline uint32_t claims_part_bytes(const struct claims *c)
{
    return (uint32_t)(c->plan->window_bytes >> c->shift);
}

/* Where the task's part begins in the file. */
static inline uint64_t claims_start(const struct claims *c, uint32_t task)
{
    uint64_t part = task & ((1u << c->shift) - 1);
    return claims_window(c, claims_cell(c, task)) * c->plan->window_bytes +
           part * claims_part_bytes(c);
}

static inline struct board_slot *claims_slot(const struct claims *c, uint32_t task)
{
    return &c->board->slots[task % c->n_slots];
}

static inline uint32_t claims_base(const struct claims *c, uint32_t task)
{
    return task / c->n_slots * SLOT_STAGES;
}

/* A view of the task's bucket. */
void claims_bucket(const struct claims *claims, uint32_t task, struct bucket *bucket);

/* Clears the bucket of a task that is done, and opens its slot for the next. */
void claims_free(const struct claims *claims, uint32_t task, struct bucket *bucket);

#endif
