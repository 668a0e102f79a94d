/* One phase: a file is opened, its transfers are moved, it is closed. */
#include <stdlib.h>

#include "ior.h"

struct under_way {
    struct phase *p;
    struct walk walk;
    void *file;
    int filling; /* every transfer has its own words */
    double begin;
};

/* As in IOR, what nobody will look at is filled once, and not for every transfer. */
static int fills(const struct test *t)
{
    return t->o.check_write || t->o.check_read || t->o.signature || !packet_compresses(t);
}

static void move(struct under_way *u, int64_t offset)
{
    struct phase *p = u->p;
    const struct target *target = &p->target;
    const struct test *t = target->t;
    const struct back_end *back = target->way->back;
    int64_t bytes = t->o.transfer;
    char why[WHY];
    if (target->writing && u->filling)
        words_fill(t, target->as, p->buf, bytes, offset);
    if (p->checking)
        words_spoil(p->buf, bytes); /* what is not read must not look right from before */
    if (back->move(u->file, target->writing, p->buf, bytes, offset, why) ||
        (target->writing && t->o.fsync_each && back->sync(u->file, why)))
        fail("%s", why);
    if (p->checking)
        words_compare(t, target->as, p->buf, bytes, offset, &p->wrong);
    p->moved += bytes;
    p->transfers++;
}

/* Collective calls end alike everywhere: rank 0's clock decides. All tasks have as many transfers
 * then: test_check refuses others. */
static int agreed(const struct target *target, int yes)
{
    const struct test *t = target->t;
    if (t->o.collective || (target->way->back->collective && !t->o.own_file))
        MPI_Bcast(&yes, 1, MPI_INT, 0, t->comm);
    return yes;
}

static int must_stop(const struct under_way *u)
{
    const struct phase *p = u->p;
    const struct test *t = p->target.t;
    int enough = p->limit && p->transfers >= p->limit;
    if (!t->o.deadline)
        return enough;
    return agreed(&p->target, enough || now() - u->begin > t->o.deadline);
}

/* At the end of the file: begin again until the least time is over? */
static int goes_on(const struct under_way *u)
{
    const struct target *target = &u->p->target;
    int least = target->t->o.least_seconds;
    return least && agreed(target, now() - u->begin < least);
}

/* The next one, from the front again behind the last; or -1: it has none. */
static int64_t next_again(struct walk *walk)
{
    int64_t offset = walk_next(walk);
    if (offset >= 0)
        return offset;
    walk_restart(walk);
    return walk_next(walk);
}

/* After the deadline all ranks do as much as the fastest did; one for which -z drew no transfers
 * has none to do. */
static void wear_out(struct under_way *u)
{
    struct phase *p = u->p;
    int64_t most = p->transfers;
    p->wall = now() - u->begin;
    p->wall_bytes = (double)p->moved;
    MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT64_T, MPI_MAX, p->target.t->comm);
    for (int64_t offset; p->transfers < most && (offset = next_again(&u->walk)) >= 0;)
        move(u, offset);
}

static void move_all(struct under_way *u)
{
    struct phase *p = u->p;
    const struct test *t = p->target.t;
    char why[WHY];
    u->begin = now();
    for (;;) {
        int64_t offset = walk_next(&u->walk);
        if (offset >= 0) {
            move(u, offset);
            if (must_stop(u))
                break;
        } else if (goes_on(u)) {
            walk_restart(&u->walk);
        } else {
            break;
        }
    }
    if (t->o.wear_out)
        wear_out(u);
    if (p->target.writing && t->o.fsync && p->target.way->back->sync(u->file, why))
        fail("%s", why);
}

static void meet(const struct test *t)
{
    if (t->o.barriers)
        MPI_Barrier(t->comm);
}

void phase_run(struct phase *p)
{
    const struct target *target = &p->target;
    const struct test *t = target->t;
    const struct back_end *back = target->way->back;
    struct under_way u = {.p = p, .filling = fills(t)};
    int64_t bytes = 0;
    char why[WHY];
    if (t->o.random_offset > 1 && back->size(target->path, &bytes, why))
        fail("%s", why);
    if (walk_start(&u.walk, t, target->as, bytes))
        fail("no memory for the order of the transfers (-z)");
    if (target->writing)
        words_fill(t, target->as, p->buf, t->o.transfer, 0);
    MPI_Barrier(t->comm);
    p->stamps[OPEN_START] = now();
    if (back->open(target, &u.file, why))
        fail("%s", why);
    p->stamps[OPEN_STOP] = now();
    meet(t);
    p->stamps[MOVE_START] = now();
    move_all(&u);
    p->stamps[MOVE_STOP] = now();
    meet(t);
    p->stamps[CLOSE_START] = now();
    if (back->close(u.file, why))
        fail("%s", why);
    p->stamps[CLOSE_STOP] = now();
    walk_end(&u.walk);
}
