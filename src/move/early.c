/* See early.h. */
#include "move/early.h"

#include <string.h>

#include "move/alone.h"

static enum plan_where planned(enum store_where where)
{
    return where == STORE_IN_MEMORY ? PLAN_IN_MEMORY
           : where == STORE_ON_DISK ? PLAN_ON_DISK
                                    : PLAN_UNKNOWN;
}

int early_may(struct early *e, const struct io_hints *hints, const struct plan_place *place,
              const struct plan_ranks *ranks)
{
    struct request_spread spread = request_spread(e->request);
    struct plan_share share = {
        .writes = e->writes, .runs = spread.runs, .run = spread.run, .pitch = spread.pitch};
    if (!e->request->bytes)
        return 1;
    e->where = alone_where(e->store, e->request, e->rank, ranks->size);
    share.where = planned(e->where);
    return plan_may_early(hints, place, &share, ranks);
}

int early_move(const struct early *e, uint64_t *moved, struct brg_error *err)
{
    *moved = e->request->bytes;
    return !*moved     ? 0
           : e->writes ? alone_write(e->store, e->request, e->where, err)
                       : alone_read(e->store, e->request, e->where, moved, err);
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
