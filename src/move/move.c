/* A call: epochs of claims, a pass over their tasks, and windows that are done once more. */
#include "move/move.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/thread.h"
#include "move/move_parts.h"

/* What a run must have to be written from where it is. */
#define LONG_BYTES (16u << 10)

void mover_fail(struct mover *m, struct brg_error *mine, const struct brg_error *failure)
{
    struct board *board = m->claims.board;
    if (failure->code == -ECANCELED || failure->code == -EOWNERDEAD)
        return;
    if (!mine->code)
        *mine = *failure;
    atomic_store(&board->failing, 1);
    for (uint32_t i = 0; i < m->claims.n_slots; i++)
        area_wake(&board->slots[i].stage);
    claims_wake_turns(&m->claims);
    area_add(&m->call->world->area->head->bell, 1);
}

void mover_moved(struct mover *m, uint64_t bytes)
{
    const struct io_call *call = m->call;
    if (m->again)
        return;
    m->moved += bytes;
    if (call->progress && call->request->bytes)
        call->progress(call->progress_context, m->moved, call->request->bytes);
}

static void lock(struct mover *m)
{
    if (m->storing)
        pthread_mutex_lock(m->storing);
}

static int unlock(struct mover *m, int rc)
{
    if (m->storing)
        pthread_mutex_unlock(m->storing);
    return rc;
}

int mover_write(struct mover *m, const void *buf, size_t bytes, uint64_t offset,
                struct brg_error *err)
{
    lock(m);
    return unlock(m, drain_write(m->call->drain, buf, bytes, offset, err));
}

int mover_hold(struct mover *m, size_t bytes, uint64_t offset)
{
    lock(m);
    return unlock(m, store_hold(m->call->store, bytes, offset));
}

void mover_release(struct mover *m, size_t bytes, uint64_t offset)
{
    lock(m);
    store_release(m->call->store, bytes, offset);
    unlock(m, 0);
}

int mover_read_raw(struct mover *m, void *buf, size_t bytes, uint64_t offset, struct brg_error *err)
{
    lock(m);
    return unlock(m, store_read_raw(m->call->store, buf, bytes, offset, err));
}

int mover_read(struct mover *m, void *buf, size_t bytes, uint64_t offset, struct brg_error *err)
{
    lock(m);
    return unlock(m, store_read_all(m->call->store, buf, bytes, offset, err));
}

/* ---- a pass ---- */

static void *serve_behind(void *mover)
{
    area_is_aside();
    slots_serve(mover);
    return NULL;
}

static int start_thread(pthread_t *thread, struct mover *m)
{
    struct brg_error err;
    int rc = brg_thread_start(thread, serve_behind, m);
    if (rc) {
        brg_error_system(&err, -rc, "cannot start a thread that writes");
        mover_fail(m, &m->failure, &err);
    }
    return rc == 0;
}

/* Where every task has a slot, who serves may as well do it between its own parts: then nobody
 * waits for a slot to be free. So may who writes on the only node, before it waits for a slot
 * itself: there are few, and a thread beside costs more than it has to do. */
static void pass(struct mover *m)
{
    pthread_t thread;
    pthread_mutex_t storing = PTHREAD_MUTEX_INITIALIZER;
    const struct io_world *w = m->call->world;
    int serves = slots_serves(m), few = claims_tasks(&m->claims) <= m->claims.n_slots;
    int aside = serves && !few && !(m->collect && m->call->plan->is_near);
    m->storing = aside ? &storing : NULL;
    m->served = 0;
    if (m->collect)
        store_begin_call(m->call->store);
    int threaded = aside && start_thread(&thread, m);
    if (serves && few && !m->collect)
        slots_serve(m);
    if (w->leaders)
        nodes_attend(m);
    else
        slots_attend(m, serves && !few && !aside);
    if (!m->again)
        own_move(m);
    if (serves && !aside && m->collect)
        slots_serve(m);
    if (threaded)
        pthread_join(thread, NULL);
    if (!m->failure.code)
        m->failure = m->behind;
    m->storing = NULL;
    if (m->collect && !m->failure.code)
        store_end_call(m->call->store, m->call->size, &m->failure);
}

/* ---- agreeing ---- */

enum {
    AGAIN,
    OVERLAP,
    FAILED,
    UNSUMMED,
    N_VALUES
};

static int end_pass(void *mover, int64_t *least)
{
    struct mover *m = mover;
    if (least[AGAIN] && least[FAILED] == INT64_MAX)
        return claims_list_again(&m->claims, least);
    return claims_wipe(&m->claims, least);
}

/* A stream of checksums goes on only where nobody else writes. */
static void guard_stream(struct mover *m)
{
    uint64_t from, until;
    if (m->collect && store_stream(m->call->store, &from, &until) &&
        claims_others_write(&m->claims, from, until))
        store_end_stream(m->call->store, &m->failure);
}

/* Every task of the epoch, and what two ranks wrote once more. */
static int move_epoch(struct mover *m)
{
    struct io_world *world = m->call->world;
    int64_t v[N_VALUES] = {0};
    int rc;
    claims_mark(&m->claims, m->call->request, LONG_BYTES);
    if (m->collect && m->call->overlap && *m->call->overlap)
        claims_take_turns(&m->claims);
    rc = world_meet(world, v, 0, claims_list, &m->claims, &m->failure);
    if (!rc) {
        guard_stream(m);
        claims_have(&m->claims);
    }
    for (m->again = 0; !rc; m->again = 1) {
        pass(m);
        v[OVERLAP] = m->again ? 0 : -(int64_t)atomic_load(&m->claims.board->again);
        v[AGAIN] = m->claims.in_turns ? 0 : v[OVERLAP];
        v[FAILED] = world_failure_key(world, &m->failure);
        v[UNSUMMED] = -store_has_unsummed(m->call->store);
        rc = world_meet(world, v, N_VALUES, end_pass, m, &m->failure);
        if (!rc)
            store_hear_unsummed(m->call->store, v[UNSUMMED] != 0);
        if (!rc)
            rc = world_failure_of(world, v[FAILED], &m->failure);
        if (!m->again && m->call->overlap)
            *m->call->overlap = v[OVERLAP] != 0;
        if (!v[AGAIN])
            break;
        claims_take_turns(&m->claims);
    }
    return rc;
}

/* The next windows that anybody touches. 1, 0 if there are none, or -errno. */
static int next_epoch(struct mover *m)
{
    uint32_t n = m->call->plan->n_writers;
    int64_t next[PLAN_MAX_WRITERS];
    int more = 0;
    if (!claims_are_left(&m->claims))
        return 0;
    claims_next(&m->claims, m->call->request, next);
    for (uint32_t d = 0; d < n; d += WORLD_VALUES) {
        int some = n - d < WORLD_VALUES ? (int)(n - d) : WORLD_VALUES;
        int rc = world_minimum(m->call->world, next + d, some, &m->failure);
        if (rc)
            return rc;
    }
    for (uint32_t d = 0; d < n && !more; d++)
        more = next[d] != INT64_MAX;
    claims_advance(&m->claims, next);
    return more;
}

static int move(const struct io_call *call, int collect, struct brg_error *err)
{
    if (!call->plan->n_writers)
        return 0;
    struct mover m = {.call = call, .collect = collect};
    int rc;
    claims_begin(&m.claims, call->world, call->plan);
    mover_moved(&m, 0);
    do
        rc = move_epoch(&m);
    while (!rc && (rc = next_epoch(&m)) > 0);
    if (rc)
        *err = m.failure;
    return rc;
}

struct plan_ranks move_ranks(const struct io_world *w)
{
    return (struct plan_ranks){.size = w->size,
                               .n_nodes = w->n_nodes,
                               .order = w->order,
                               .room_bytes = w->area->room_bytes};
}

int move_write(const struct io_call *call, struct brg_error *err)
{
    return move(call, 1, err);
}

int move_read(const struct io_call *call, struct brg_error *err)
{
    return move(call, 0, err);
}
