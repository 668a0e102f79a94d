/* See hull.h. */
#include "move/hull.h"

void hull_add(struct hull *h, uint64_t low, uint64_t high)
{
    if (low >= high)
        return;
    if (h->low == h->high)
        *h = (struct hull){low, high};
    if (low < h->low)
        h->low = low;
    if (high > h->high)
        h->high = high;
}

int hull_meets(const struct hull *h, uint64_t low, uint64_t high)
{
    return low < high && low < h->high && h->low < high;
}

void hull_say(const struct hull *h, int64_t v[HULL_VALUES])
{
    v[HULL_LOW] = h->low < h->high ? (int64_t)h->low : INT64_MAX;
    v[HULL_HIGH] = -(int64_t)h->high;
}

struct hull hull_heard(const int64_t v[HULL_VALUES])
{
    struct hull h = {0, 0};
    if (v[HULL_HIGH] < 0)
        h = (struct hull){(uint64_t)v[HULL_LOW], (uint64_t)-v[HULL_HIGH]};
    return h;
}
