/* See handoff.h. A loop of small steps, each of which says whether it moved anything. */
#include "move/handoff.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/error.h"
#include "move/handoff_parts.h"

#define REST_MIN_NS 10000u
#define REST_MAX_NS 300000u

static int open_tasks(struct handoff_run *r, uint32_t *next)
{
    struct handoff *h = r->h;
    int moved = 0;
    for (; *next < h->n_tasks && r->tail - r->head < HANDOFF_OPEN; ++*next, moved = 1) {
        struct bucket *bucket = h->bucket(h->context, *next);
        if (!bucket)
            return moved;
        if (bucket->bytes > h->spares->bytes || !bucket->owner != !h->spares->owner)
            return brg_error_set(r->err, -EINVAL, "the spare buckets are too small");
        struct open_task *open = handoff_open(r, r->tail);
        *open = (struct open_task){.t = *next, .bucket = bucket};
        h->task(h->context, *next, &open->task);
        open->source = handoff_source(r, open, HANDOFF_NOBODY);
        open->target = handoff_target(r, open, HANDOFF_NOBODY);
        r->tail++;
    }
    return moved;
}

/* Whether all that a node of this role waits for has come. */
static int is_complete(struct handoff_run *r, struct open_task *open)
{
    if (open->receiving || open->source != HANDOFF_NOBODY)
        return 0;
    if (r->scatter && open->task.home != r->net->rank)
        return 1;
    return r->h->filled(r->h->context, open->t);
}

static int advance_task(struct handoff_run *r, struct open_task *open)
{
    struct handoff *h = r->h;
    int at_home = open->task.home == r->net->rank;
    if (open->ended)
        return 0;
    if (!open->complete) {
        open->complete = is_complete(r, open);
        if (!open->complete)
            return 0;
        if (at_home != r->scatter)
            h->arrived(h->context, open->t);
    }
    if (open->target != HANDOFF_NOBODY || open->sending)
        return 0;
    if (r->scatter || !at_home)
        h->handed(h->context, open->t);
    return open->ended = 1;
}

static int advance_tasks(struct handoff_run *r)
{
    int moved = 0;
    for (uint32_t i = r->head; i != r->tail; i++)
        moved |= advance_task(r, handoff_open(r, i));
    while (r->head != r->tail && handoff_open(r, r->head)->ended)
        r->head++;
    /* Cursors never fall behind: what ended has nothing to ask or give. */
    if ((int32_t)(r->asking - r->head) < 0)
        r->asking = r->head;
    if ((int32_t)(r->giving - r->head) < 0)
        r->giving = r->head;
    return moved;
}

static int step(struct handoff_run *r, uint32_t *next)
{
    int moved = open_tasks(r, next), rc = 0;
    if (moved < 0)
        return moved;
    rc = handoff_receive_step(r);
    if (rc < 0)
        return rc;
    moved |= rc | advance_tasks(r);
    rc = handoff_send_step(r);
    if (rc < 0)
        return rc;
    return moved | rc | advance_tasks(r);
}

static int run_steps(struct handoff_run *r)
{
    struct handoff *h = r->h;
    uint64_t rest_ns = REST_MIN_NS;
    for (uint32_t next = 0; next < h->n_tasks || r->head != r->tail;) {
        int rc = h->failed(h->context);
        if (rc == -EOWNERDEAD)
            return rc;
        r->failed |= rc != 0;
        rc = step(r, &next);
        if (rc < 0)
            return rc;
        if (rc) {
            rest_ns = REST_MIN_NS;
            continue;
        }
        h->rest(h->context, rest_ns);
        rest_ns = rest_ns * 2 > REST_MAX_NS ? REST_MAX_NS : rest_ns * 2;
    }
    return 0;
}

/* Runs that ended with messages under way: headers and requests must stay, for ever. */
static _Atomic(struct handoff_run *) left_behind;

static int run(struct handoff *h, int scatter, struct brg_error *err)
{
    struct handoff_run *r = calloc(1, sizeof *r);
    if (!r)
        return brg_error_set(err, -ENOMEM, "no memory for the messages of a node");
    *r = (struct handoff_run){
        .h = h, .net = h->net, .scatter = scatter, .asks = scatter && !h->brigade, .err = err};
    int rc = run_steps(r);
    if (!rc) {
        free(r);
        return 0;
    }
    r->next = atomic_load(&left_behind);
    while (!atomic_compare_exchange_weak(&left_behind, &r->next, r))
        continue;
    return rc;
}

int handoff_collect(struct handoff *h, struct brg_error *err)
{
    return run(h, 0, err);
}

int handoff_scatter(struct handoff *h, struct brg_error *err)
{
    return run(h, 1, err);
}
