/* The way of a window: pure. Nodes stand in a row; in a collection home is the last, in a
 * scattering the first, and the others follow in the order of the ring. Only those concerned, and
 * home, are met. */
#include "move/handoff_parts.h"

static uint32_t place_of(const struct handoff_run *r, const struct open_task *open, uint32_t node)
{
    uint32_t size = r->net->size;
    return (node + 2 * size - open->task.home - (r->scatter ? 0 : 1)) % size;
}

static uint32_t node_at(const struct handoff_run *r, const struct open_task *open, uint32_t place)
{
    return (place + open->task.home + (r->scatter ? 0 : 1)) % r->net->size;
}

static int concerned(const struct handoff_run *r, const struct open_task *open, uint32_t place)
{
    uint32_t node = node_at(r, open, place);
    return node == open->task.home || r->h->concerns(r->h->context, open->t, node);
}

/* The first node concerned from `place` on, before `end`. */
static uint32_t first_from(const struct handoff_run *r, const struct open_task *open,
                           uint32_t place, uint32_t end)
{
    for (; place < end; place++)
        if (concerned(r, open, place))
            return node_at(r, open, place);
    return HANDOFF_NOBODY;
}

static uint32_t last_before(const struct handoff_run *r, const struct open_task *open,
                            uint32_t place)
{
    while (place-- > 0)
        if (concerned(r, open, place))
            return node_at(r, open, place);
    return HANDOFF_NOBODY;
}

uint32_t handoff_source(const struct handoff_run *r, const struct open_task *open, uint32_t last)
{
    uint32_t me = place_of(r, open, r->net->rank);
    if (r->h->brigade)
        return last == HANDOFF_NOBODY ? last_before(r, open, me) : HANDOFF_NOBODY;
    if (r->scatter)
        return last == HANDOFF_NOBODY && me > 0 ? open->task.home : HANDOFF_NOBODY;
    if (open->task.home != r->net->rank)
        return HANDOFF_NOBODY;
    return first_from(r, open, last == HANDOFF_NOBODY ? 0 : place_of(r, open, last) + 1, me);
}

uint32_t handoff_target(const struct handoff_run *r, const struct open_task *open, uint32_t last)
{
    uint32_t me = place_of(r, open, r->net->rank), end = r->net->size;
    if (r->h->brigade)
        return last == HANDOFF_NOBODY ? first_from(r, open, me + 1, end) : HANDOFF_NOBODY;
    if (!r->scatter)
        return last == HANDOFF_NOBODY && me + 1 < end ? open->task.home : HANDOFF_NOBODY;
    if (open->task.home != r->net->rank)
        return HANDOFF_NOBODY;
    return first_from(r, open, last == HANDOFF_NOBODY ? 1 : place_of(r, open, last) + 1, end);
}
