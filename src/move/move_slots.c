/* Windows through slots: ranks put bytes into them, or take them out, and writers serve them.
 *
 * All ranks of a node take tasks in the same order, and a task's slot is free when an earlier task
 * is done: so what anybody waits for never waits for him. Who serves on the way serves a task as
 * soon as it waits, in its turn, for something that comes after it. */
#include <string.h>

#include "world/fault.h"
#include "move/move_parts.h"

static int wait_for(struct mover *m, uint32_t task, enum slot_stage stage)
{
    return area_wait_unless(m->call->world->area, &claims_slot(&m->claims, task)->stage,
                            claims_base(&m->claims, task) + stage, &m->claims.board->failing);
}

void slots_reach(struct mover *m, uint32_t task, enum slot_stage stage)
{
    area_set(&claims_slot(&m->claims, task)->stage, claims_base(&m->claims, task) + stage);
    if (m->call->world->n_nodes > 1)
        area_add(&m->call->world->area->head->bell, 1);
}

int slots_touch(const struct mover *m, uint32_t task)
{
    const struct claims *c = &m->claims;
    uint64_t bytes = c->plan->window_bytes;
    uint64_t from = claims_window(c, claims_cell(c, task)) * bytes;
    struct io_cursor cursor;
    if (from >= m->call->request->high || from + bytes <= m->call->request->low)
        return 0;
    cursor_seek(&cursor, m->call->request, from);
    return cursor_at(&cursor) < from + bytes;
}

/* Where other nodes are concerned the leader counts as well: when it has handed a window on. */
void slots_came(struct mover *m, uint32_t task)
{
    const struct claims *c = &m->claims;
    struct board_slot *slot = claims_slot(c, task);
    int nodes = c->world->n_nodes > 1;
    uint32_t all = claims_count(c, claims_cell(c, task)) + (uint32_t)(nodes && !m->collect);
    if (atomic_fetch_add_explicit(&slot->came, 1, memory_order_acq_rel) + 1 != all)
        return;
    if (m->collect) {
        atomic_store_explicit(&slot->came, 0, memory_order_relaxed);
        slots_reach(m, task, nodes ? SLOT_FILLED : SLOT_ARRIVED);
    } else {
        struct bucket bucket;
        claims_bucket(c, task, &bucket);
        claims_free(c, task, &bucket);
    }
}

void slots_pass(struct mover *m, uint32_t task)
{
    struct bucket bucket;
    struct io_cursor cursor;
    struct io_part part;
    uint64_t moved = 0;
    claims_bucket(&m->claims, task, &bucket);
    cursor_seek(&cursor, m->call->request, bucket.start);
    io_fault_kill(IO_FAULT_SLOT);
    while (cursor_next(&cursor, bucket.start + bucket.bytes, &part)) {
        if (m->collect)
            bucket_put(&bucket, part.offset, part.memory, part.bytes, m->call->world->rank);
        else
            memcpy(part.memory, bucket.image + (part.offset - bucket.start), part.bytes);
        moved += part.bytes;
    }
    if (m->collect)
        bucket_done(&bucket);
    mover_moved(m, moved);
    slots_came(m, task);
}

/* Whether this rank wants bytes of a task that another node must be asked for. */
static int asks_for(const struct mover *m, uint32_t task)
{
    const struct claims *c = &m->claims;
    const struct io_world *w = c->world;
    return !m->collect && w->n_nodes > 1 && c->plan->transport != IO_BRIGADE &&
           w->node_of[claims_home(c, claims_cell(c, task))] != w->node && slots_touch(m, task);
}

static void mark_wanted(struct mover *m, uint32_t task)
{
    struct board_slot *slot = claims_slot(&m->claims, task);
    struct bucket bucket;
    struct io_cursor cursor;
    struct io_part part;
    claims_bucket(&m->claims, task, &bucket);
    cursor_seek(&cursor, m->call->request, bucket.start);
    while (cursor_next(&cursor, bucket.start + bucket.bytes, &part))
        bucket_mark(&bucket, part.offset, part.bytes);
    bucket_done(&bucket);
    if (atomic_fetch_add_explicit(&slot->came, 1, memory_order_acq_rel) + 1 !=
        claims_count(&m->claims, claims_cell(&m->claims, task)))
        return;
    atomic_store_explicit(&slot->came, 0, memory_order_relaxed);
    slots_reach(m, task, SLOT_WANTED);
}

void slots_want(struct mover *m, uint32_t task)
{
    if (asks_for(m, task))
        mark_wanted(m, task);
}

/* What it will take from other nodes, as far as slots are open, the one of `task` at least: *next
 * is the first that it has not said yet. */
static int want_ahead(struct mover *m, uint32_t task, uint32_t *next)
{
    const struct claims *c = &m->claims;
    for (; *next < claims_tasks(c); ++*next) {
        uint32_t base = claims_base(c, *next);
        if (!asks_for(m, *next))
            continue;
        if (*next > task && !area_reached(&claims_slot(c, *next)->stage, base + SLOT_OPEN))
            return 0;
        int rc = wait_for(m, *next, SLOT_OPEN);
        if (rc)
            return rc;
        mark_wanted(m, *next);
    }
    return 0;
}

static void serve_until(struct mover *m, uint32_t until);

void slots_attend(struct mover *m, int serves)
{
    uint32_t n = claims_tasks(&m->claims), wanted = 0;
    int turns = m->claims.in_turns;
    for (uint32_t task = 0; task < n; task++) {
        int touches = slots_touch(m, task);
        if (turns && (touches || serves)) /* what is served may wait for ranks after this one */
            claims_reach(&m->claims, task);
        if (serves && task >= m->claims.n_slots) /* whoever comes so far waits for its slot */
            serve_until(m, task - m->claims.n_slots + 1);
        if (!touches)
            continue;
        if (want_ahead(m, task, &wanted))
            return;
        if (wait_for(m, task, m->collect ? SLOT_OPEN : SLOT_FILLED))
            return;
        if (turns && claims_wait_turn(&m->claims, task))
            return;
        slots_pass(m, task);
    }
    if (turns)
        claims_reach(&m->claims, n);
}

/* ---- the other side ---- */

static void do_again(struct mover *m, uint32_t task)
{
    uint32_t cell = claims_cell(&m->claims, task);
    atomic_fetch_or_explicit(&m->claims.again[cell / 64], UINT64_C(1) << cell % 64,
                             memory_order_relaxed);
    atomic_store(&m->claims.board->again, 1);
}

static int write_task(struct mover *m, uint32_t task, struct brg_error *err)
{
    struct bucket bucket;
    io_fault_kill(IO_FAULT_SLOT);
    int rc = wait_for(m, task, SLOT_ARRIVED);
    if (rc)
        return rc;
    claims_bucket(&m->claims, task, &bucket);
    if (!m->call->any && !m->again && bucket_overlapped(&bucket))
        do_again(m, task);
    rc = sieve_write(m, &bucket, err);
    if (!rc)
        claims_free(&m->claims, task, &bucket);
    return rc;
}

static int read_task(struct mover *m, uint32_t task, struct brg_error *err)
{
    const struct io_plan *plan = m->call->plan;
    struct bucket bucket;
    io_fault_kill(IO_FAULT_SLOT);
    int rc = wait_for(m, task, SLOT_OPEN);
    if (rc)
        return rc;
    claims_bucket(&m->claims, task, &bucket);
    uint64_t from = plan->low > bucket.start ? plan->low : bucket.start;
    uint64_t until = bucket.start + bucket.bytes;
    if (until > plan->high)
        until = plan->high;
    rc = mover_read(m, bucket.image + (from - bucket.start), until - from, from, err);
    if (rc)
        return rc;
    if (m->call->world->n_nodes > 1)
        bucket_cover(&bucket, from, until - from);
    slots_reach(m, task, SLOT_FILLED);
    return 0;
}

int slots_serves(const struct mover *m)
{
    for (uint32_t d = 0; d < m->call->plan->n_writers; d++)
        if (m->call->plan->writers[d] == m->call->world->rank)
            return 1;
    return 0;
}

static void serve_until(struct mover *m, uint32_t until)
{
    const struct claims *c = &m->claims;
    for (; m->served < until; m->served++) {
        struct brg_error err = {.rank = -1, .offset = -1};
        if (claims_home(c, claims_cell(c, m->served)) != m->call->world->rank)
            continue;
        int rc = m->collect ? write_task(m, m->served, &err) : read_task(m, m->served, &err);
        if (rc) {
            err.code = rc;
            mover_fail(m, &m->behind, &err);
            m->served = claims_tasks(c); /* no more of this pass */
            return;
        }
    }
}

void slots_serve(struct mover *m)
{
    serve_until(m, claims_tasks(&m->claims));
}
