/* Cases of tests/io/io_driver.c: what each rank writes and reads follows from a few numbers, so one
 * line of text says a case wholly, and any process can work out the file that must come of it.
 *
 *     seed=7 writers=4 readers=3 calls=2 size=300000 gap=0 kinds=31 apart=0 update=none hints=...
 *
 * The bytes of a file lie in [0, size), its second half `gap` bytes further on. Rank r makes 0 to
 * `calls` calls; what it asks in its k-th is a function of (seed, phase, r, k). With `apart`, ranks
 * write no byte of each other's in a call; without, many. */
#ifndef BRG_TEST_IO_CASE_H
#define BRG_TEST_IO_CASE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "brigade/io.h"

enum kind {
    NOTHING = 1, /* of the mask `kinds` */
    STRETCH = 2, /* one, possibly long */
    PIECES = 4,  /* some: in any order, over one another, empty ones among them */
    CRUMBS = 8,  /* many small ones, one behind the other */
    BLOCK = 16,  /* of an array */
    ROW = 32     /* the next of the rank's own stretch; sometimes one before it again */
};

enum phase {
    WRITING,
    UPDATING,
    READING
};

enum {
    MOST_PIECES = 256
};

struct test_case {
    uint64_t seed, size, gap;
    int writers, readers, calls, kinds, apart;
    char update[16], hints[256], line[512];
};

/* What one rank asks in one call; a stretch is a list of one piece. */
struct ask {
    enum kind kind;
    uint64_t key; /* of the bytes written */
    brg_piece pieces[MOST_PIECES];
    size_t n;
    uint64_t bytes;

    uint64_t offset; /* the array's; below, its block in the file and in memory */
    size_t element;
    int ndims;
    uint64_t shape[4], start[4], count[4];
    int64_t strides[4];
    int gapless;
    int64_t low, room; /* bytes of memory before and in all */
};

static inline uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static inline uint64_t below(uint64_t *state, uint64_t n)
{
    *state = mix(*state);
    return n ? *state % n : 0;
}

/* Mostly small, sometimes all there is. */
static inline uint64_t some_bytes(uint64_t *state, uint64_t most)
{
    static const uint64_t limits[] = {1, 40, 4096, 70000, UINT64_MAX};
    uint64_t limit = limits[below(state, 5)];
    return below(state, (limit < most ? limit : most) + 1);
}

static inline unsigned char byte_of(uint64_t key, uint64_t i)
{
    return (unsigned char)(((key + i) * 0x9e3779b97f4a7c15u) >> 55);
}

static inline uint64_t place_of(const struct test_case *c, uint64_t at)
{
    return at < c->size / 2 ? at : at + c->gap;
}

static inline uint64_t end_of(const struct test_case *c, uint64_t at)
{
    return at < c->size / 2 ? c->size / 2 : c->size;
}

static inline int calls_of(const struct test_case *c, enum phase phase, int rank)
{
    return (int)(mix(c->seed ^ mix((uint64_t)phase << 32 | (uint64_t)(unsigned)rank)) %
                 (uint64_t)(c->calls + 1));
}

static inline void ask_crumbs(const struct test_case *c, int rank, struct ask *ask,
                              uint64_t *shared, uint64_t *state)
{
    uint64_t at = c->apart ? below(shared, 100) + 17 * (uint64_t)rank : below(state, c->size);
    uint64_t step = c->apart ? 17 * (uint64_t)c->writers : 1 + below(state, 300);
    for (; ask->n < MOST_PIECES && (at < c->size || !c->apart); at += step) {
        uint64_t from = at % c->size, most = end_of(c, from) - from, bytes = 1 + below(state, 16);
        ask->pieces[ask->n] = (brg_piece){place_of(c, from), bytes < most ? bytes : most};
        ask->bytes += ask->pieces[ask->n++].bytes;
    }
}

static inline void ask_pieces(const struct test_case *c, int rank, struct ask *ask, uint64_t *state)
{
    uint64_t low = c->apart ? c->size / (uint64_t)c->writers * (uint64_t)rank : 0;
    uint64_t span = c->apart ? c->size / (uint64_t)c->writers : c->size;
    ask->n = !span ? 0 : ask->kind == STRETCH ? 1 : below(state, 20);
    for (size_t i = 0; i < ask->n; i++) {
        uint64_t at = low + below(state, span), end = end_of(c, at);
        end = end < low + span ? end : low + span;
        ask->pieces[i] = (brg_piece){place_of(c, at), some_bytes(state, end - at)};
        ask->bytes += ask->pieces[i].bytes;
    }
}

static inline void ask_row(const struct test_case *c, int rank, int call, struct ask *ask,
                           uint64_t *state)
{
    uint64_t own = c->size / (uint64_t)c->writers, step = own / (uint64_t)c->calls;
    uint64_t at = own * (uint64_t)rank + step * (uint64_t)call;
    if (below(state, 4) == 0)
        at -= below(state, (c->apart ? at - own * (uint64_t)rank : at) + 1);
    ask->n = 1;
    ask->bytes = step < end_of(c, at) - at ? step : end_of(c, at) - at;
    ask->pieces[0] = (brg_piece){place_of(c, at), ask->bytes};
}

/* Memory: in the order of the indices or another, with gaps, some of them backwards. */
static inline void lay_out(struct ask *ask, uint64_t *state)
{
    int order[4] = {0, 1, 2, 3};
    ask->gapless = below(state, 3) == 0;
    for (int i = ask->ndims - 1; i > 0 && !ask->gapless; i--) {
        int j = (int)below(state, (uint64_t)i + 1), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
    int64_t step = (int64_t)ask->element;
    for (int i = ask->ndims - 1; i >= 0; i--) {
        int d = order[i];
        step += ask->gapless ? 0 : (int64_t)below(state, 4);
        int back = !ask->gapless && below(state, 4) == 0;
        ask->strides[d] = back ? -step : step;
        step *= (int64_t)(ask->count[d] ? ask->count[d] : 1);
        if (back)
            ask->low += step - (ask->count[d] ? step / (int64_t)ask->count[d] : 0);
    }
    ask->room = step + (int64_t)ask->element;
}

/* The array is the same for all ranks of a call; the block is the rank's own. */
static inline void ask_block(const struct test_case *c, int rank, struct ask *ask, uint64_t *shared,
                             uint64_t *state)
{
    static const size_t elements[] = {1, 2, 4, 8, 16, 3, 24};
    uint64_t half = c->size / 2, room;
    ask->element = elements[below(shared, 7)];
    ask->ndims = 1 + (int)below(shared, 4);
    room = half / ask->element;
    ask->bytes = ask->element;
    for (int d = 0; d < ask->ndims; d++) {
        uint64_t most = d == ask->ndims - 1 ? room : 1 + below(shared, 40);
        ask->shape[d] = most < room ? most : room;
        room /= ask->shape[d] ? ask->shape[d] : 1;
        uint64_t low = 0, high = ask->shape[d], ranks = (uint64_t)c->writers;
        if (c->apart && d == 0) { /* a slab */
            low = high * (uint64_t)rank / ranks;
            high = high * (uint64_t)(rank + 1) / ranks;
        }
        ask->start[d] = low + below(state, high - low);
        ask->count[d] = below(state, high - ask->start[d] + 1);
        ask->bytes *= ask->count[d];
    }
    uint64_t bytes = ask->element;
    for (int d = 0; d < ask->ndims; d++)
        bytes *= ask->shape[d];
    ask->offset = place_of(c, below(shared, half - bytes + 1) + half * below(shared, 2));
    lay_out(ask, state);
}

static inline void ask_make(const struct test_case *of, enum phase phase, int rank, int call,
                            struct ask *ask)
{
    struct test_case own = *of, *c = &own;
    uint64_t of_call = mix(mix(c->seed) ^ ((uint64_t)phase << 32 | (uint64_t)(unsigned)call));
    uint64_t state = mix(of_call ^ mix((uint64_t)(unsigned)rank + 77)), shared = of_call;
    memset(ask, 0, sizeof *ask);
    own.apart = of->apart && phase != READING;
    ask->key = mix(state);
    do
        ask->kind = (enum kind)(1 << below(c->apart ? &shared : &state, 6));
    while (!(ask->kind & (enum kind)c->kinds));
    if (ask->kind == BLOCK)
        ask_block(c, rank, ask, &shared, &state);
    else if (ask->kind == ROW)
        ask_row(c, rank, call, ask, &state);
    else if (ask->kind == CRUMBS)
        ask_crumbs(c, rank, ask, &shared, &state);
    else if (ask->kind != NOTHING)
        ask_pieces(c, rank, ask, &state);
}

/* Calls `each` for every run of bytes: where it lies in the file, in memory, how long it is, and
 * the number of its first byte in the request. Later runs win. */
typedef void each_run(void *with, uint64_t offset, int64_t at, uint64_t bytes, uint64_t first);

static inline void ask_walk(const struct ask *ask, each_run *each, void *with)
{
    uint64_t done = 0, index[4] = {0};
    if (ask->kind != BLOCK) {
        for (size_t i = 0; i < ask->n; done += ask->pieces[i++].bytes)
            if (ask->pieces[i].bytes)
                each(with, ask->pieces[i].offset, (int64_t)done, ask->pieces[i].bytes, done);
        return;
    }
    for (; done < ask->bytes; done += ask->element) {
        uint64_t element = 0;
        int64_t at = ask->low;
        for (int d = 0; d < ask->ndims; d++) {
            element = element * ask->shape[d] + ask->start[d] + index[d];
            at += ask->strides[d] * (int64_t)index[d];
        }
        each(with, ask->offset + element * ask->element, at, ask->element, done);
        for (int d = ask->ndims - 1; d >= 0 && ++index[d] == ask->count[d]; d--)
            index[d] = 0;
    }
}

static inline int case_read(struct test_case *c, const char *line)
{
    memset(c, 0, sizeof *c);
    snprintf(c->line, sizeof c->line, "%s", line);
    c->line[strcspn(c->line, "\n")] = '\0';
    return sscanf(line,
                  "seed=%lu writers=%d readers=%d calls=%d size=%lu gap=%lu kinds=%d apart=%d "
                  "update=%15s "
                  "hints=%255s",
                  &c->seed, &c->writers, &c->readers, &c->calls, &c->size, &c->gap, &c->kinds,
                  &c->apart, c->update, c->hints) >= 9;
}

#endif
