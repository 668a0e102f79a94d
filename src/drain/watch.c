/* See watch.h. */
#include "drain/watch.h"

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

/* Follows what is shorter eight times as fast as what is longer: one gap of nine is shorter. */
void watch_note_gap(struct watch *watch, uint64_t key, double seconds)
{
    struct watch_sort *sort = find(watch, key);
    if (!sort)
        return;
    if (sort->gaps < WATCH_LEARNT)
        sort->gaps++;
    if (sort->gaps == 1)
        sort->gap = seconds;
    else
        sort->gap += (seconds - sort->gap) / (seconds < sort->gap ? 4 : 32);
}

double watch_gap(struct watch *watch, uint64_t key)
{
    struct watch_sort *sort = find(watch, key);
    return sort && sort->gaps >= WATCH_LEARNT ? sort->gap : 0;
}
