/* A one-sided call, step by step.
 *
 * The windows of a round, one of each owner, go through four steps, one after another: ranks mark
 * those they touch (MARK); owners make theirs ready, reading what must be kept (FILL); ranks move
 * their bytes (MOVE); owners write (WRITE; a call that reads ends before). Four rounds are under
 * way at once, each in another step, and ranks meet between steps. A window that moves and one that
 * is written or filled are the owner's two. Rounds that nobody touches are left out: which is the
 * next one, the meeting says. */
#include "move/onesided.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "move/onesided_parts.h"
#include "world/fault.h"

#define NONE INT64_MAX
#define NAP_NS 50000L

enum step {
    MARK,
    FILL,
    MOVE,
    WRITE,
    STEPS
};

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

void onesided_close(struct onesided *o)
{
    o->pgas->release(o->pgas, o->marks);
    o->pgas->release(o->pgas, o->windows);
    free(o);
}

size_t onesided_explain(const struct onesided *o, char *text, size_t room)
{
    const struct onesided_last *last = &o->last;
    const struct onesided_cost *now = &o->cost, *was = &last->before;
    int n = 0;
    *text = '\0';
    if (last->owners)
        n = snprintf(text, room,
                     "%s\nowners: %u of %u ranks, windows of %llu bytes\nlast call: %llu rounds, "
                     "%llu meetings; this rank: %llu bytes by itself, %llu copied in reach, %llu "
                     "put or got in %llu moves, %llu as an owner, %llu read to be kept\n",
                     last->reason, last->owners, o->pgas->size,
                     (unsigned long long)last->window_bytes,
                     (unsigned long long)(now->rounds - was->rounds),
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

/* ---- a step ---- */

static void *serve_behind(void *serving)
{
    struct serving *s = serving;
    serve(s);
    atomic_store(&s->done, 1);
    return NULL;
}

/* Between nodes, what others put here may need this rank's help: it must not wait for a disk. */
static int start_thread(struct serving *s, pthread_t *thread)
{
    sigset_t all, before;
    int serves = 0;
    for (uint32_t d = 0; d < s->run->plan.n_writers; d++)
        serves |= s->run->plan.writers[d] == s->run->o->pgas->rank;
    if (!serves || s->run->o->pgas->n_nodes == 1 || (s->write == NONE && s->fill == NONE))
        return 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(thread, NULL, serve_behind, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc == 0;
}

/* An addition of nothing lets what carries the group go on. */
static void wait_for_thread(struct serving *s, pthread_t thread)
{
    struct onesided *o = s->run->o;
    uint64_t before;
    while (!atomic_load(&s->done)) {
        struct timespec nap = {.tv_nsec = NAP_NS};
        o->pgas->fetch_add(o->pgas, o->marks + 2 * ONESIDED_MARKS, 0, o->pgas->rank, &before);
        nanosleep(&nap, NULL);
    }
    pthread_join(thread, NULL);
}

static void step(struct onesided_run *run, const int64_t rounds[STEPS], unsigned turn)
{
    struct serving s = {.run = run,
                        .write = run->collect ? rounds[WRITE] : NONE,
                        .fill = rounds[FILL],
                        .write_turn = turn - WRITE,
                        .fill_turn = turn - FILL,
                        .failure = {.rank = -1, .offset = -1}};
    pthread_t thread;
    int threaded = start_thread(&s, &thread);
    ranks_mark(run, rounds[MARK], turn - MARK);
    ranks_move(run, rounds[MOVE], turn - MOVE);
    if (threaded)
        wait_for_thread(&s, thread);
    else
        serve(&s);
    if (s.failure.code && !run->failure.code)
        run->failure = s.failure;
}

/* ---- agreeing ---- */

/* 0, or the failure of the lowest rank that has one, which is run->failure everywhere. *next
 * becomes the least of all ranks'. */
static int agree(struct onesided_run *run, int64_t *next)
{
    struct onesided *o = run->o;
    struct pgas *p = o->pgas;
    struct brg_error *failure = &run->failure, err = {.rank = -1, .offset = -1};
    struct io_store *store = run->call->store;
    int64_t v[3] = {failure->code ? (int64_t)p->rank : NONE, *next,
                    run->collect ? -store_has_unsummed(store) : 0};
    if (failure->code && failure->rank < 0)
        failure->rank = (int)p->rank;
    o->cost.meetings++;
    int rc = p->reduce(p, PGAS_MIN, v, 3, &err);
    if (!rc && run->collect)
        store_hear_unsummed(store, v[2] != 0);
    if (!rc && v[0] != NONE)
        rc = p->broadcast(p, failure, sizeof *failure, (uint32_t)v[0], &err);
    if (rc)
        *failure = err;
    *next = v[1];
    return failure->code;
}

static int move_rounds(struct onesided_run *run)
{
    int64_t rounds[STEPS] = {0, NONE, NONE, NONE};
    uint64_t size = run->end > run->size ? run->end : run->size;
    int last = run->collect ? WRITE : MOVE, more = 1, rc = 0;
    if (run->collect) {
        store_begin_call(run->call->store);
        store_end_stream(run->call->store, &run->failure); /* another may own its block now */
    }
    for (unsigned turn = STEPS; !rc && more; turn++) {
        step(run, rounds, turn);
        int64_t next = rounds[MARK] == NONE ? NONE : next_round(run, rounds[MARK]);
        run->o->cost.rounds += rounds[MOVE] != NONE;
        memmove(rounds + 1, rounds, (STEPS - 1) * sizeof *rounds);
        more = 0;
        for (int i = 1; i <= last; i++)
            more |= rounds[i] != NONE;
        if (!more && run->collect && !run->failure.code)
            store_end_call(run->call->store, size, &run->failure);
        rc = agree(run, &next);
        rounds[MARK] = next;
    }
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

/* What all ranks ask for, and know of the file's size; *one_run: of each. */
static int meet(const struct onesided_call *call, struct io_extent *extent, uint64_t *size,
                int *one_run, struct brg_error *err)
{
    struct onesided *o = call->o;
    struct pgas *p = o->pgas;
    const struct io_request *r = call->request;
    struct io_part part;
    enum {
        SIZE = EXTENT_VALUES,
        REFUSED,
        ONE_RUN,
        N_VALUES
    };
    int64_t v[N_VALUES] = {[SIZE] = -(int64_t)call->size,
                           [REFUSED] =
                               call->refused && call->refused->code ? (int64_t)p->rank : NONE,
                           [ONE_RUN] = !r->bytes || request_run(r, &part)};
    extent_say(r, v);
    memset(o->marks, 0, 2 * ONESIDED_MARKS * sizeof *o->marks); /* a call that failed leaves some */
    o->cost.meetings++;
    int rc = p->reduce(p, PGAS_MIN, v, N_VALUES, err);
    if (!rc && v[REFUSED] != NONE)
        rc = refuse(call, (uint32_t)v[REFUSED], err);
    *extent = extent_heard(v);
    *size = (uint64_t)-v[SIZE];
    *one_run = v[ONE_RUN] != 0;
    return rc;
}

/* Each rank has one long run of a file in place: no window is needed, and nobody waits for a step.
 * Where runs meet, either rank's bytes arrive, as by any other way. */
static int move_runs(struct onesided_run *run)
{
    struct io_part part = {.bytes = 0};
    struct brg_error *failure = &run->failure;
    int64_t none = NONE;
    size_t got;
    request_run(run->call->request, &part);
    io_fault_kill(IO_FAULT_SLOT);
    if (part.bytes && run->collect)
        onesided_to_file(run, part.memory, part.bytes, part.offset, failure);
    else if (part.offset < run->end && part.bytes) {
        part.bytes = part.bytes < run->end - part.offset ? part.bytes : run->end - part.offset;
        onesided_from_file(run, part.memory, part.bytes, part.offset, &got, failure);
    }
    run->o->cost.own_bytes += part.bytes;
    return agree(run, &none);
}

static void remember(struct onesided *o, const struct io_plan *plan)
{
    o->last = (struct onesided_last){
        .before = o->cost, .window_bytes = plan->window_bytes, .owners = plan->n_writers};
    memcpy(o->last.reason, plan->reason, sizeof o->last.reason);
}

static int move(const struct onesided_call *call, int collect, uint64_t *size,
                struct brg_error *err)
{
    struct onesided *o = call->o;
    struct pgas *p = o->pgas;
    struct brg_error failure = {.rank = -1, .offset = -1};
    struct io_extent extent;
    struct onesided_run run = {.call = call,
                               .o = o,
                               .collect = collect,
                               .storing = PTHREAD_MUTEX_INITIALIZER,
                               .failure = {.rank = -1, .offset = -1}};
    int one_run = 0, rc = meet(call, &extent, &run.size, &one_run, &failure);
    if (!rc && !collect && call->grows && extent.high > run.size)
        rc = look_at_size(call, &run.size, &failure);
    if (rc) {
        *err = failure;
        return rc;
    }
    struct plan_ranks ranks = {
        .size = p->size, .n_nodes = p->n_nodes, .order = p->order, .room_bytes = o->window_bytes};
    plan_blocks(&run.plan, call->hints, call->stripe_bytes, &extent, &ranks);
    remember(o, &run.plan);
    run.end = collect || extent.high < run.size ? extent.high : run.size;
    int by_runs = one_run && call->grows && run.plan.transport == IO_DIRECT;
    if (extent.low < run.end)
        rc = by_runs ? move_runs(&run) : move_rounds(&run);
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
