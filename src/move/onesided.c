/* One-sided calls: what the ranks ask for, and which way it goes. onesided_rounds.c has the way
 * through windows. */
#include "move/onesided.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "move/early.h"
#include "move/onesided_parts.h"
#include "world/fault.h"

#define NONE INT64_MAX

int onesided_open(struct pgas *pgas, uint64_t window_bytes, struct onesided **out,
                  struct brg_error *err)
{
    struct onesided *o = calloc(1, sizeof *o);
    int64_t have = o != NULL;
    void *windows = NULL, *marks = NULL;
    int rc = pgas->reduce(pgas, PGAS_MIN, &have, 1, err);
    if (!rc && !have)
        rc = brg_error_set(err, -ENOMEM, "no memory for a file");
    if (!rc)
        rc = pgas->allocate(pgas, WINDOWS * (size_t)window_bytes, &windows, err);
    if (!rc &&
        (rc = pgas->allocate(pgas, (2 * ONESIDED_MARKS + 1) * sizeof(uint64_t), &marks, err)))
        pgas->release(pgas, windows);
    if (rc) {
        free(o);
        return rc;
    }
    *o = (struct onesided){
        .pgas = pgas, .window_bytes = window_bytes, .windows = windows, .marks = marks};
    *out = o;
    return 0;
}

int onesided_open_messages(struct pgas *pgas, struct io_world *world, struct onesided **out,
                           struct brg_error *err)
{
    struct onesided *o = calloc(1, sizeof *o);
    if (!o)
        return brg_error_set(err, -ENOMEM, "no memory for a file");
    o->pgas = pgas;
    o->world = world;
    *out = o;
    return 0;
}

void onesided_close(struct onesided *o)
{
    if (!o->world) {
        o->pgas->release(o->pgas, o->marks);
        o->pgas->release(o->pgas, o->windows);
    }
    free(o);
}

void onesided_forget(struct onesided *o)
{
    free(o);
}

size_t onesided_explain(const struct onesided *o, char *text, size_t room)
{
    const struct onesided_last *last = &o->last;
    const struct onesided_cost *now = &o->cost, *was = &last->before;
    char how[sizeof last->reason + 96];
    int n = 0;
    *text = '\0';
    snprintf(how, sizeof how, "%s", last->reason);
    if (last->owners)
        snprintf(how, sizeof how, "%s\nowners: %u of %u ranks, windows of %llu bytes", last->reason,
                 last->owners, o->pgas->size, (unsigned long long)last->window_bytes);
    if (last->called)
        n = snprintf(text, room,
                     "%s\nlast call: %llu rounds, "
                     "%llu meetings; this rank: %llu bytes by itself, %llu copied in reach, %llu "
                     "put or got in %llu moves, %llu as an owner, %llu read to be kept\n",
                     how, (unsigned long long)(now->rounds - was->rounds),
                     (unsigned long long)(now->meetings - was->meetings),
                     (unsigned long long)(now->own_bytes - was->own_bytes),
                     (unsigned long long)(now->near_bytes - was->near_bytes),
                     (unsigned long long)(now->far_bytes - was->far_bytes),
                     (unsigned long long)(now->far_moves - was->far_moves),
                     (unsigned long long)(now->owner_bytes - was->owner_bytes),
                     (unsigned long long)(now->kept_bytes - was->kept_bytes));
    return n <= 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
}

const struct onesided_cost *onesided_cost(const struct onesided *o)
{
    return &o->cost;
}

/* ---- the file ---- */

int onesided_to_file(struct onesided_run *run, const void *buf, size_t bytes, uint64_t offset,
                     struct brg_error *err)
{
    pthread_mutex_lock(&run->storing);
    int rc = drain_write(run->call->drain, buf, bytes, offset, err);
    pthread_mutex_unlock(&run->storing);
    return rc;
}

int onesided_from_file(struct onesided_run *run, void *buf, size_t bytes, uint64_t offset,
                       size_t *got, struct brg_error *err)
{
    pthread_mutex_lock(&run->storing);
    *got = bytes;
    int rc = run->collect ? store_read(run->call->store, buf, bytes, offset, got, err)
                          : store_read_all(run->call->store, buf, bytes, offset, err);
    pthread_mutex_unlock(&run->storing);
    return rc;
}

/* ---- a call ---- */

/* Of a file in place, what ranks know of its size is what they did themselves. */
static int look_at_size(const struct onesided_call *call, uint64_t *size, struct brg_error *err)
{
    struct pgas *p = call->o->pgas;
    struct {
        uint64_t size;
        struct brg_error failure;
    } found = {.size = *size, .failure = {.rank = -1, .offset = -1}};
    if (p->rank == 0 && store_size(call->store, &found.size, &found.failure))
        found.failure.rank = 0;
    int rc = p->broadcast(p, &found, sizeof found, 0, err);
    if (!rc && found.failure.code)
        *err = found.failure;
    if (!rc && found.size > *size)
        *size = found.size;
    return rc ? rc : found.failure.code;
}

/* The failure of the lowest rank that cannot take part. */
static int refuse(const struct onesided_call *call, uint32_t rank, struct brg_error *err)
{
    struct pgas *p = call->o->pgas;
    struct brg_error failure = {.rank = -1, .offset = -1};
    if (p->rank == rank) {
        failure = *call->refused;
        failure.rank = (int)rank;
    }
    int rc = p->broadcast(p, &failure, sizeof failure, rank, err);
    if (!rc)
        *err = failure;
    return rc ? rc : failure.code;
}

/* What the ranks learn when they meet. */
struct met {
    struct io_extent extent; /* of what all ask for */
    int one_run;             /* of each */
    int moved;               /* by each, all that it asks for */
    int64_t left[LEFT_VALUES];
};

/* Fills run->size as well: what anybody knows. moved: this rank has moved its bytes, or has
 * run->failure instead; else `early` is what it has. */
static int meet(struct onesided_run *run, const struct early *early, int moved, struct met *met)
{
    const struct onesided_call *call = run->call;
    struct onesided *o = run->o;
    struct pgas *p = o->pgas;
    const struct io_request *r = call->request;
    struct io_part part;
    enum {
        SIZE = EXTENT_VALUES,
        REFUSED,
        FAILED,
        ONE_RUN,
        MOVED,
        BEHIND,
        LEFT = BEHIND + HULL_VALUES,
        N_VALUES = LEFT + LEFT_VALUES
    };
    int64_t me = (int64_t)p->rank;
    int64_t v[N_VALUES] = {[SIZE] = -(int64_t)call->size,
                           [REFUSED] = call->refused && call->refused->code ? me : NONE,
                           [FAILED] = run->failure.code ? me : NONE,
                           [ONE_RUN] = !r->bytes || request_run(r, &part),
                           [MOVED] = moved};
    extent_say(r, v);
    hull_say(call->behind, v + BEHIND);
    early_say_left(moved ? NULL : early, v + LEFT);
    if (o->marks) /* a call that failed leaves some */
        memset(o->marks, 0, 2 * ONESIDED_MARKS * sizeof *o->marks);
    o->cost.meetings++;
    struct brg_error err = {.rank = -1, .offset = -1};
    int rc = p->reduce(p, PGAS_MIN, v, N_VALUES, &err);
    if (!rc)
        *call->behind = hull_heard(v + BEHIND);
    if (!rc && v[REFUSED] != NONE)
        rc = refuse(call, (uint32_t)v[REFUSED], &err);
    else if (!rc && v[FAILED] != NONE)
        return rounds_hear_failure(run, (uint32_t)v[FAILED]);
    if (rc)
        run->failure = err;
    *met = (struct met){extent_heard(v), v[ONE_RUN] != 0, v[MOVED] != 0, {0}};
    memcpy(met->left, v + LEFT, sizeof met->left);
    run->size = (uint64_t)-v[SIZE];
    return rc;
}

/* This rank's one run of a file in place, as far as that goes: no window is needed. Returns bytes
 * moved. Where runs meet, either rank's bytes arrive, as by any other way. */
static size_t move_run(struct onesided_run *run, const struct io_part *part)
{
    size_t moved = part->bytes;
    int rc = 0;
    if (part->bytes)
        io_fault_kill(IO_FAULT_SLOT);
    if (part->bytes && run->collect)
        rc = onesided_to_file(run, part->memory, part->bytes, part->offset, &run->failure);
    else if (part->bytes)
        rc = store_read(run->call->store, part->memory, part->bytes, part->offset, &moved,
                        &run->failure);
    if (!rc)
        show_own(run);
    run->o->cost.own_bytes += moved;
    return moved;
}

/* This rank's bytes of a file in place. 0: there was less to read. */
static int move_own(struct onesided_run *run, const struct early *early)
{
    uint64_t moved;
    if (early->request->bytes)
        io_fault_kill(IO_FAULT_SLOT);
    if (!early_move(early, &moved, &run->failure))
        show_own(run);
    run->o->cost.own_bytes += moved;
    return moved == early->request->bytes;
}

/* What of a file in place a rank need not ask the others about, or nothing: it moves that before
 * they meet. 0: it may not, or there was less to read; then it is moved (once more) with
 * everybody's. */
static int move_early(struct onesided_run *run, struct early *early, const struct plan_ranks *ranks)
{
    const struct onesided_call *call = run->call;
    *early = (struct early){.store = call->store,
                            .request = call->request,
                            .rank = run->o->pgas->rank,
                            .share = {.writes = run->collect}};
    return call->grows && !(call->refused && call->refused->code) &&
           early_may(early, call->hints, &call->place, ranks) && move_own(run, early);
}

/* The same when all have one run and have met: what is past the end is left alone. */
static int move_runs(struct onesided_run *run)
{
    struct io_part part = {.bytes = 0};
    int64_t none = NONE;
    request_run(run->call->request, &part);
    if (part.offset >= run->end)
        part.bytes = 0;
    else if (part.bytes > run->end - part.offset)
        part.bytes = run->end - part.offset;
    move_run(run, &part);
    return rounds_agree(run, &none);
}

static int move_by_messages(struct onesided_run *run)
{
    struct io_request request = *run->call->request;
    struct io_call call = {.world = run->o->world,
                           .plan = &run->plan,
                           .store = run->call->store,
                           .drain = run->call->drain,
                           .size = run->end > run->size ? run->end : run->size,
                           .request = &request};
    if (!run->collect && request.high > run->end)
        request_clip(&request, run->end);
    int rc = run->collect ? move_write(&call, &run->failure) : move_read(&call, &run->failure);
    return rc ? rc : show_all(run);
}

static void remember(struct onesided *o, const struct io_plan *plan)
{
    o->last.window_bytes = plan->window_bytes;
    o->last.owners = plan->n_writers;
    memcpy(o->last.reason, plan->reason, sizeof o->last.reason);
}

/* Each moves its own, when they have met. */
static int move_scattered(struct onesided_run *run, const struct early *early)
{
    int64_t none = NONE;
    snprintf(run->o->last.reason, sizeof run->o->last.reason,
             "each rank moved its bytes: they lie far apart");
    move_own(run, early);
    return rounds_agree(run, &none);
}

/* What is left to do when the ranks have met. */
static int move_rest(struct onesided_run *run, struct met *met, struct early *early,
                     const struct plan_ranks *ranks)
{
    const struct onesided_call *call = run->call;
    struct io_extent *extent = &met->extent;
    if (!run->collect && call->grows && extent->high > run->size &&
        look_at_size(call, &run->size, &run->failure))
        return run->failure.code;
    run->end = run->collect || extent->high < run->size ? extent->high : run->size;
    if (extent->low >= run->end)
        return 0;
    struct io_extent there = *extent;
    extent_cut(&there, run->end);
    if (call->grows &&
        early_is_scattered(early, met->left, call->hints, &call->place, &there, ranks))
        return move_scattered(run, early);
    if (run->o->world) {
        struct plan_ranks of_world = move_ranks(run->o->world);
        plan_make(&run->plan, call->hints, &call->place, &there, &of_world);
        remember(run->o, &run->plan);
        return move_by_messages(run);
    }
    extent->readers = there.readers;
    plan_blocks(&run->plan, call->hints, &call->place, extent, ranks);
    remember(run->o, &run->plan);
    if (met->one_run && call->grows && run->plan.transport == IO_DIRECT)
        return move_runs(run);
    int rc = rounds_move(run);
    return rc ? rc : show_all(run);
}

static int move(const struct onesided_call *call, int collect, uint64_t *size,
                struct brg_error *err)
{
    struct onesided *o = call->o;
    struct pgas *p = o->pgas;
    struct met met = {.moved = 0};
    struct onesided_run run = {.call = call,
                               .o = o,
                               .collect = collect,
                               .storing = PTHREAD_MUTEX_INITIALIZER,
                               .failure = {.rank = -1, .offset = -1}};
    struct plan_ranks ranks = {
        .size = p->size, .n_nodes = p->n_nodes, .order = p->order, .room_bytes = o->window_bytes};
    o->last = (struct onesided_last){.before = o->cost, .called = 1, .reason = "no bytes"};
    struct early early;
    int moved = move_early(&run, &early, &ranks);
    int rc = meet(&run, &early, moved, &met);
    if (!rc)
        run.end = met.extent.high;
    if (moved && !rc && met.moved)
        snprintf(o->last.reason, sizeof o->last.reason,
                 "each rank moved its bytes before they met");
    if (!rc && !met.moved)
        rc = show_before(&run, &met.extent);
    if (!rc && !met.moved)
        rc = move_rest(&run, &met, &early, &ranks);
    show_ended(&run, &met.extent, rc);
    if (rc)
        *err = run.failure;
    else
        *size = run.end > run.size ? run.end : run.size;
    return rc;
}

int onesided_write(const struct onesided_call *call, uint64_t *size, struct brg_error *err)
{
    return move(call, 1, size, err);
}

int onesided_read(const struct onesided_call *call, uint64_t *size, struct brg_error *err)
{
    return move(call, 0, size, err);
}
