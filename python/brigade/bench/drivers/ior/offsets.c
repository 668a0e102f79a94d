/* Which blocks a task moves, and in which order, as IOR has it to the letter: what one of the two
 * programs wrote, the other reads in the same order. Pure, but for the C library's random numbers,
 * which are IOR's. */
#include <stdlib.h>

#include "ior.h"

/* Ranks 0 and 1 on one node: the next node is a node's tasks away. */
static int node_step(const struct test *t)
{
    return t->by_block ? t->on_node0 : 1;
}

int check_shift(const struct test *t)
{
    return t->o.reorder ? (t->o.offset_tasks + 1) * node_step(t) % t->ranks : 0;
}

static unsigned reorder_seed(const struct test *t, int repetition)
{
    int seed = t->o.reorder_seed;
    return seed < 0 ? (unsigned)(-seed + repetition) : (unsigned)seed;
}

int64_t least_random_shift(const struct test *t)
{
    int away = t->o.offset_tasks < t->nodes ? t->o.offset_tasks : t->nodes - 1;
    return (int64_t)away * t->on_node0;
}

/* Each rank draws for itself: some blocks are read twice, and some by nobody. */
static int random_shift(const struct test *t, int repetition)
{
    int shift;
    srand((unsigned)t->rank + reorder_seed(t, repetition));
    do
        shift = rand() % t->ranks;
    while (shift < least_random_shift(t));
    return shift;
}

/* All ranks draw the same permutation, whole, and each looks up its own place in it. */
static int shuffled_shift(const struct test *t, int repetition)
{
    int *order = malloc((size_t)t->ranks * sizeof *order);
    if (!order)
        return 0;
    srand(reorder_seed(t, repetition));
    for (int i = 0; i < t->ranks; i++)
        order[i] = i;
    for (int i = 0; i < t->ranks; i++) {
        int other = i + rand() % (t->ranks - i), kept = order[other];
        order[other] = order[i];
        order[i] = kept;
    }
    int shift = order[t->rank] - t->rank;
    free(order);
    return (shift + t->ranks) % t->ranks;
}

int read_shift(const struct test *t, int repetition)
{
    if (t->o.reorder_random == 1)
        return random_shift(t, repetition);
    if (t->o.reorder_random > 1)
        return shuffled_shift(t, repetition);
    return t->o.reorder ? t->o.offset_tasks * node_step(t) % t->ranks : 0;
}

/* -z: of a shared file every rank draws whose each transfer of a segment is, alike; then each puts
 * its own in an order. With -F a rank has its own transfers, in an order. */
static int shuffle(struct walk *w)
{
    const struct options *o = &w->t->o;
    int seed = o->random_seed + (o->own_file ? w->as : 0);
    int64_t all = o->block / o->transfer * (o->own_file ? 1 : w->t->ranks), n = 0;
    w->shuffled = malloc((size_t)all * sizeof *w->shuffled);
    if (!w->shuffled)
        return -1;
    srandom((unsigned)seed);
    for (int64_t i = 0; i < all; i++)
        if (o->own_file || random() % w->t->ranks == w->as)
            w->shuffled[n++] = i * o->transfer;
    for (int64_t i = 0; i < n; i++) {
        int64_t other = random() % n, kept = w->shuffled[other];
        w->shuffled[other] = w->shuffled[i];
        w->shuffled[i] = kept;
    }
    w->count = n;
    return 0;
}

/* -z -z: the next block, by IOR's own generator of 64 bits. */
static int64_t next_block(struct walk *w)
{
    static const uint64_t times_high = 0x0fc94e3bf4e9ab32, times_low = 0x866458cd56f5e605;
    w->low *= times_low;
    w->high = w->high * times_high + (w->low >> 32);
    return (int64_t)(w->high % (uint64_t)w->blocks);
}

int walk_start(struct walk *w, const struct test *t, int as, int64_t bytes)
{
    const struct options *o = &t->o;
    int64_t seed = o->random_seed + (o->own_file ? as : 0);
    *w = (struct walk){.t = t, .as = as, .count = o->block / o->transfer};
    w->blocks = bytes / o->block;
    w->low = (uint64_t)seed * ((uint64_t)as + 1);
    return o->random_offset == 1 ? shuffle(w) : 0;
}

static int64_t segment_offset(struct walk *w)
{
    const struct options *o = &w->t->o;
    if (o->random_offset > 1)
        return next_block(w) * o->block;
    if (o->own_file)
        return w->segment * o->block;
    return (w->segment * w->t->ranks + (o->random_offset ? 0 : w->as)) * o->block;
}

int64_t walk_next(struct walk *w)
{
    const struct options *o = &w->t->o;
    if (w->transfer == w->count) {
        w->transfer = 0;
        w->segment++;
    }
    if (w->segment >= o->segments || w->count == 0 || (o->random_offset > 1 && w->blocks == 0))
        return -1;
    if (w->transfer == 0)
        w->base = segment_offset(w);
    int64_t i = w->transfer++;
    return w->base + (w->shuffled ? w->shuffled[i] : i * o->transfer);
}

void walk_restart(struct walk *w)
{
    w->segment = w->transfer = 0;
}

void walk_end(struct walk *w)
{
    free(w->shuffled);
}

struct shape view_shape(const struct target *target)
{
    const struct test *t = target->t;
    int64_t block = t->o.block / t->o.transfer;
    return (struct shape){.all = block * (t->o.own_file ? 1 : t->ranks),
                          .count = block,
                          .start = block * (t->o.own_file ? 0 : target->as)};
}

int64_t view_transfer(const struct target *target, int64_t offset)
{
    const struct test *t = target->t;
    int64_t segment = t->o.block * (t->o.own_file ? 1 : t->ranks);
    int64_t start = t->o.own_file ? 0 : target->as * t->o.block;
    return (offset / segment * t->o.block + offset % segment - start) / t->o.transfer;
}
