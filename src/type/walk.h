/* Walking a layout: run by run, in the order of the type map, which is the order of the data. Pure.
 *
 *   walk_start(&w, placed, 0);
 *   while (w.run.bytes)
 *       use w.run.at, w.run.bytes; then walk_skip(&w, w.run.bytes)
 *
 * Runs that touch are given as one. Memory is constant, and nothing is allocated: a walk keeps a
 * place in each row and list above it. The innermost row is kept apart (`comb`), so that most steps
 * are an addition. */
#ifndef BRG_TYPE_WALK_H
#define BRG_TYPE_WALK_H

#include "type/layout.h"

struct walk_run {
    int64_t at;
    uint64_t bytes; /* 0: the walk is at its end */
};

struct walk {
    struct walk_run run; /* the bytes under the walk */
    /* what comes after them without looking up: `left` runs of `bytes`, `stride` apart. No run is
     * left only where the walk has looked up already, and there is nothing more. */
    struct {
        int64_t at, stride;
        uint64_t bytes, left;
    } comb;
    int depth;
    struct walk_place {
        const struct layout *node;
        uint64_t index; /* of the child that the walk is in */
        int64_t at;     /* of the node */
    } places[LAYOUT_MAX_DEPTH];
};

/* The walk is at byte `position` of the data: where that is past the last byte, at its end. */
void walk_start(struct walk *w, struct placed what, uint64_t position);

/* The walk is at the first byte that lies at `at` or after it, or at its end; returns how many
 * bytes of data come before. The layout's runs have to be `apart`. */
uint64_t walk_start_at(struct walk *w, struct placed what, int64_t at);

/* For walk_next: the comb has one run left or none. */
void walk_climb(struct walk *w);

/* To the next run. */
static inline void walk_next(struct walk *w)
{
    w->run.at = w->comb.at;
    if (__builtin_expect(w->comb.left > 1, 1)) {
        w->run.bytes = w->comb.bytes;
        w->comb.at += w->comb.stride;
        w->comb.left--;
    } else
        walk_climb(w);
}

/* On by `bytes`, at most what is left of the run. */
static inline void walk_skip(struct walk *w, uint64_t bytes)
{
    w->run.at += (int64_t)bytes;
    w->run.bytes -= bytes;
    if (w->run.bytes == 0)
        walk_next(w);
}

#endif
