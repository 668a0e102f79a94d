/* A leader's part in the tasks: its own bytes, and windows to and from other nodes. */
#include <errno.h>

#include "move/handoff.h"
#include "move/move_parts.h"

struct bridge {
    struct mover *m;
    struct bucket buckets[CLAIM_MAX_SLOTS]; /* by slot */
    uint32_t closed[CLAIM_MAX_SLOTS];       /* by slot: the last task that is over here, plus 1 */
    uint32_t opened;                        /* tasks whose slot was found open */
    uint32_t heard; /* the bell, before what is looked at now was looked at */
};

static int is_failing(const struct mover *m)
{
    return atomic_load_explicit(&m->claims.board->failing, memory_order_relaxed) != 0;
}

static int has_reached(const struct mover *m, uint32_t task, enum slot_stage stage)
{
    return is_failing(m) || area_reached(&claims_slot(&m->claims, task)->stage,
                                         claims_base(&m->claims, task) + stage);
}

static void task_of(void *context, uint32_t t, struct handoff_task *task)
{
    const struct claims *c = &((struct bridge *)context)->m->claims;
    uint32_t cell = claims_cell(c, t);
    task->window = claims_window(c, cell);
    task->home = c->world->node_of[claims_home(c, cell)];
}

static int concerns(void *context, uint32_t t, uint32_t node)
{
    const struct claims *c = &((struct bridge *)context)->m->claims;
    return claims_touch(c, claims_cell(c, t), node);
}

/* After a failure nobody may be there to free a slot; then it is enough that no message of its
 * last task is under way. */
static int is_open(const struct bridge *b, uint32_t t)
{
    const struct claims *c = &b->m->claims;
    if (area_reached(&claims_slot(c, t)->stage, claims_base(c, t) + SLOT_OPEN))
        return 1;
    return is_failing(b->m) && b->closed[t % c->n_slots] + c->n_slots == t + 1;
}

/* In a collection the leader puts its own bytes as soon as there is room for them, in a scattering
 * it marks them. */
static struct bucket *bucket_of(void *context, uint32_t t)
{
    struct bridge *b = context;
    struct mover *m = b->m;
    struct bucket *bucket = &b->buckets[t % m->claims.n_slots];
    if (t < b->opened)
        return bucket;
    if (!is_open(b, t))
        return NULL;
    b->opened = t + 1;
    claims_bucket(&m->claims, t, bucket);
    if (m->collect && slots_touch(m, t) && !is_failing(m))
        slots_pass(m, t);
    if (m->claims.in_turns)
        claims_reach(&m->claims, b->opened); /* the leader is the first of its node */
    if (!m->collect && !is_failing(m))
        slots_want(m, t);
    return bucket;
}

static int filled(void *context, uint32_t t)
{
    const struct mover *m = ((struct bridge *)context)->m;
    if (m->collect && !claims_count(&m->claims, claims_cell(&m->claims, t)))
        return 1;
    return has_reached(m, t, SLOT_FILLED);
}

static int wanted(void *context, uint32_t t)
{
    return has_reached(((struct bridge *)context)->m, t, SLOT_WANTED);
}

static void arrived(void *context, uint32_t t)
{
    struct bridge *b = context;
    struct mover *m = b->m;
    if (m->collect)
        b->closed[t % m->claims.n_slots] = t + 1;
    slots_reach(m, t, m->collect ? SLOT_ARRIVED : SLOT_FILLED);
}

static void handed(void *context, uint32_t t)
{
    struct bridge *b = context;
    struct mover *m = b->m;
    b->closed[t % m->claims.n_slots] = t + 1;
    if (m->collect) {
        claims_free(&m->claims, t, &b->buckets[t % m->claims.n_slots]);
        return;
    }
    if (slots_touch(m, t) && !is_failing(m))
        slots_pass(m, t);
    slots_came(m, t);
}

static int failed(void *context)
{
    const struct mover *m = ((struct bridge *)context)->m;
    int rc = world_look(m->claims.world);
    if (rc)
        return -EOWNERDEAD;
    return is_failing(m) ? -ECANCELED : 0;
}

static void rest(void *context, uint64_t ns)
{
    struct bridge *b = context;
    struct io_world *world = b->m->claims.world;
    world_rest(world, b->heard, ns);
    b->heard = atomic_load(&world->area->head->bell);
}

void nodes_attend(struct mover *m)
{
    const struct claims *c = &m->claims;
    struct bridge b = {.m = m, .heard = atomic_load(&c->world->area->head->bell)};
    struct bucket spares[HANDOFF_SPARES];
    struct brg_error err = {.rank = -1, .offset = -1};
    struct handoff h = {.net = c->world->leaders,
                        .brigade = c->plan->transport == IO_BRIGADE,
                        .n_tasks = claims_tasks(c),
                        .spares = spares,
                        .n_spares = claims_spares(c, spares, HANDOFF_SPARES),
                        .context = &b,
                        .task = task_of,
                        .concerns = concerns,
                        .bucket = bucket_of,
                        .filled = filled,
                        .wanted = wanted,
                        .arrived = arrived,
                        .handed = handed,
                        .failed = failed,
                        .rest = rest};
    int rc = m->collect ? handoff_collect(&h, &err) : handoff_scatter(&h, &err);
    if (rc && rc != -EOWNERDEAD)
        atomic_store(&c->world->area->head->code, rc); /* messages are under way: it is of no use */
}
