/* A one-sided call, step by step.
 *
 * The windows of a round, one of each owner, go through four steps, one after another: ranks mark
 * those they touch (MARK); owners make theirs ready, reading what must be kept (FILL); ranks move
 * their bytes (MOVE); owners write (WRITE; a call that reads ends before). Four rounds are under
 * way at once, each in another step, and ranks meet between steps. A window that moves and one that
 * is written or filled are the owner's two. Rounds that nobody touches are left out: which is the
 * next one, the meeting says. */
#include <string.h>
#include <time.h>

#include "base/thread.h"
#include "move/onesided_parts.h"

#define NONE INT64_MAX
#define NAP_NS 50000L

enum step {
    MARK,
    FILL,
    MOVE,
    WRITE,
    STEPS
};

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
    int serves = 0;
    for (uint32_t d = 0; d < s->run->plan.n_writers; d++)
        serves |= s->run->plan.writers[d] == s->run->o->pgas->rank;
    if (!serves || s->run->o->pgas->n_nodes == 1 || (s->write == NONE && s->fill == NONE))
        return 0;
    return brg_thread_start(thread, serve_behind, s) == 0;
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

int rounds_hear_failure(struct onesided_run *run, uint32_t rank)
{
    struct pgas *p = run->o->pgas;
    struct brg_error err = {.rank = -1, .offset = -1};
    if (p->rank == rank && run->failure.rank < 0)
        run->failure.rank = (int)rank;
    if (p->broadcast(p, &run->failure, sizeof run->failure, rank, &err))
        run->failure = err;
    return run->failure.code;
}

int rounds_agree(struct onesided_run *run, int64_t *next)
{
    struct onesided *o = run->o;
    struct pgas *p = o->pgas;
    struct brg_error *failure = &run->failure, err = {.rank = -1, .offset = -1};
    struct io_store *store = run->call->store;
    int64_t v[3] = {failure->code ? (int64_t)p->rank : NONE, *next,
                    run->collect ? -store_has_unsummed(store) : 0};
    o->cost.meetings++;
    int rc = p->reduce(p, PGAS_MIN, v, 3, &err);
    if (!rc && run->collect)
        store_hear_unsummed(store, v[2] != 0);
    if (rc)
        *failure = err;
    else if (v[0] != NONE)
        rounds_hear_failure(run, (uint32_t)v[0]);
    *next = v[1];
    return failure->code;
}

int rounds_move(struct onesided_run *run)
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
        rc = rounds_agree(run, &next);
        rounds[MARK] = next;
    }
    return rc;
}
