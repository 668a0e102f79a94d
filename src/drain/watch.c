/* See watch.h. */
#include "drain/watch.h"

#include <math.h>

uint64_t watch_key(unsigned kind, uintptr_t communicator, uint64_t bytes)
{
    unsigned size = 0;
    for (; bytes; bytes >>= 2)
        size++;
    uint64_t key = (uint64_t)communicator * 64 + size;
    return (key * 64 + kind) * 0x9e3779b97f4a7c15u | 1;
}

static struct watch_sort *find(struct watch *watch, uint64_t key)
{
    for (unsigned i = 0; i < WATCH_SORTS; i++) {
        struct watch_sort *sort = &watch->sorts[((key >> 32) + i) % WATCH_SORTS];
        if (sort->key == key)
            return sort;
        if (!sort->key) {
            sort->key = key;
            return sort;
        }
    }
    return NULL;
}

void watch_note(struct watch *watch, uint64_t key, double seconds, enum watch_when when)
{
    struct watch_sort *sort = find(watch, key);
    if (!sort)
        return;
    int learnt = sort->calls >= WATCH_LEARNT;
    double expected = sort->seconds;
    if (learnt && seconds > WATCH_FARTHEST * expected)
        seconds = WATCH_FARTHEST * expected;
    if (when != WATCH_BUSY) {
        if (sort->calls < WATCH_MEMORY && ++sort->calls == WATCH_LEARNT)
            watch->sums.sorts++;
        sort->seconds += (seconds - expected) / sort->calls;
    }
    if (when != WATCH_ALONE && learnt) {
        struct watch_sums *s = &watch->sums;
        s->calls++;
        s->x += seconds;
        s->b += expected;
        s->xx += seconds * seconds;
        s->xb += seconds * expected;
        s->bb += expected * expected;
    }
}

static float second_shortest(const struct watch_sort *sort)
{
    unsigned n = sort->gaps < WATCH_GAPS ? sort->gaps : WATCH_GAPS;
    float least = sort->last[0], second = HUGE_VALF;
    for (unsigned i = 1; i < n; i++) {
        float longer = sort->last[i] > least ? sort->last[i] : least;
        least = sort->last[i] < least ? sort->last[i] : least;
        second = longer < second ? longer : second;
    }
    return second;
}

void watch_note_gap(struct watch *watch, uint64_t key, double seconds)
{
    struct watch_sort *sort = find(watch, key);
    if (!sort)
        return;
    sort->last[sort->gaps++ % WATCH_GAPS] = (float)seconds;
    if (sort->gaps >= WATCH_LEARNT)
        sort->gap = second_shortest(sort);
    if (sort->gap >= WATCH_LONG) {
        watch->long_gap = sort->gap;
        watch->short_gaps = 0;
    } else if (watch->short_gaps < WATCH_NEAR)
        watch->short_gaps++;
}

double watch_gap(struct watch *watch, uint64_t key)
{
    struct watch_sort *sort = find(watch, key);
    return sort ? sort->gap : 0;
}

double watch_long_gap(const struct watch *watch)
{
    return watch->short_gaps < WATCH_NEAR ? watch->long_gap : 0;
}
