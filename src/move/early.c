/* See early.h. */
#include "move/early.h"

#include <string.h>

static int tell(const struct io_call *call, uint64_t moved, int rc)
{
    if (!rc && call->progress)
        call->progress(call->progress_context, moved, call->request->bytes);
    return rc;
}

int early_write(const struct io_call *call, const struct io_part *run, struct brg_error *err)
{
    tell(call, 0, 0);
    return tell(call, run->bytes,
                store_write_early(call->store, run->memory, run->bytes, run->offset, err));
}

int early_read(const struct io_call *call, const struct io_part *run, struct brg_error *err)
{
    tell(call, 0, 0);
    return tell(call, run->bytes,
                store_read_all(call->store, run->memory, run->bytes, run->offset, err));
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
