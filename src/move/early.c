/* See early.h. */
#include "move/early.h"

#include <string.h>

#include "move/alone.h"

int early_may(struct early *e, const struct io_hints *hints, const struct plan_place *place,
              const struct plan_ranks *ranks)
{
    e->share.spread = request_spread(e->request);
    if (!e->request->bytes)
        return 1;
    e->share.where = e->share.spread.runs > 1 ? STORE_UNKNOWN : STORE_IN_MEMORY;
    if (plan_may_look(hints, place, &e->share, ranks))
        e->share.where = e->share.spread.runs > 1
                             ? alone_where(e->store, e->request, e->rank, ranks->size)
                             : store_where(e->store, e->request->low);
    return plan_may_early(hints, place, &e->share, ranks);
}

int early_move(const struct early *e, uint64_t *moved, struct brg_error *err)
{
    *moved = e->request->bytes;
    if (!*moved)
        return 0;
    enum store_where where = e->reads_on ? STORE_IN_MEMORY : e->share.where;
    return e->share.writes ? alone_write(e->store, e->request, where, err)
                           : alone_read(e->store, e->request, where, moved, err);
}

/* ---- when the ranks have met ---- */

void early_say_left(const struct early *e, int64_t v[LEFT_VALUES])
{
    const struct request_spread *s = e ? &e->share.spread : NULL;
    int left = s && s->runs;
    v[LEFT_STRETCHES] = left ? -(int64_t)s->stretches : 0;
    v[LEFT_RUNS] = left ? -(int64_t)s->runs : 0;
    v[LEFT_LENGTH] = left ? -(int64_t)s->length : 0;
    v[LEFT_PITCH] = left ? (int64_t)s->pitch : INT64_MAX;
    v[LEFT_WHERE] = left ? (int64_t)e->share.where : STORE_IN_MEMORY;
}

int early_is_scattered(struct early *e, const int64_t v[LEFT_VALUES], const struct io_hints *hints,
                       const struct plan_place *place, struct io_extent *extent,
                       const struct plan_ranks *ranks)
{
    e->share.spread = (struct request_spread){.stretches = (uint64_t)-v[LEFT_STRETCHES],
                                              .runs = (uint64_t)-v[LEFT_RUNS],
                                              .run = extent->run,
                                              .length = (uint64_t)-v[LEFT_LENGTH],
                                              .pitch = (uint64_t)v[LEFT_PITCH]};
    e->share.where = (enum store_where)v[LEFT_WHERE];
    e->reads_on = !e->share.writes && plan_reads_on(extent, &e->share, ranks);
    extent->readers = plan_readers(hints, place, extent, &e->share, ranks);
    return !extent->readers && plan_is_scattered(hints, extent, &e->share, ranks);
}

/* ---- judging ---- */

typedef uint64_t key_of(const struct early_claim *claim);

static uint64_t low_of(const struct early_claim *claim)
{
    return claim->low;
}

static uint64_t from_of(const struct early_claim *claim)
{
    return claim->from;
}

/* Ranks mostly lie in the file in their order: then this compares each with the one before. */
static void sort(const struct early_claim *claims, uint32_t n, key_of *key, uint16_t *order)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = i;
        for (; at && key(&claims[order[at - 1]]) > key(&claims[i]); at--)
            order[at] = order[at - 1];
        order[at] = (uint16_t)i;
    }
}

static int overlap(const struct early_claim *claims, uint32_t n)
{
    uint16_t order[EARLY_MOST_RANKS];
    uint64_t high = 0;
    sort(claims, n, low_of, order);
    for (uint32_t i = 0; i < n; i++) {
        const struct early_claim *c = &claims[order[i]];
        if (c->low == c->high)
            continue;
        if (c->low < high)
            return 1;
        high = c->high;
    }
    return 0;
}

/* Of those that begin before one, the one that ends last meets it if any does; of those that begin
 * behind, the first. */
static void share(const struct early_claim *claims, uint32_t n, unsigned char *shares)
{
    uint16_t order[EARLY_MOST_RANKS];
    uint32_t last = n;
    sort(claims, n, from_of, order);
    memset(shares, 0, n);
    for (uint32_t i = 0; i < n; i++) {
        const struct early_claim *c = &claims[order[i]];
        if (c->from == c->until)
            continue;
        if (last < n && c->from < claims[last].until)
            shares[order[i]] = shares[last] = 1;
        if (last == n || c->until > claims[last].until)
            last = order[i];
    }
}

int early_judge(const struct early_claim *claims, uint32_t n, unsigned char *shares)
{
    if (overlap(claims, n))
        return 0;
    share(claims, n, shares);
    return 1;
}

int early_is_dense(const struct early_claim *claims, uint32_t n)
{
    uint64_t low = UINT64_MAX, high = 0, bytes = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct early_claim *c = &claims[i];
        if (c->low == c->high)
            continue;
        low = c->low < low ? c->low : low;
        high = c->high > high ? c->high : high;
        bytes += c->high - c->low;
    }
    return bytes && bytes == high - low;
}
