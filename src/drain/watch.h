/* How long a program's own collective calls take, while Brigade writes behind its back and while it
 * does not. Pure: times come from the caller, who also sees to it that one thread at a time calls.
 *
 * Calls are told apart by what they are, on which communicator, and how many bytes they move (by
 * powers of 4). What such a call takes is learned while nothing is written; while something is,
 * each call of a known sort adds to the sums: its own seconds and what would have been expected.
 *
 * After a call of a sort the program computes for some time until its next call, often for much the
 * same: the gap. What is written within it meets none of the program's messages. */
#ifndef BRG_IO_WATCH_H
#define BRG_IO_WATCH_H

#include <stddef.h>
#include <stdint.h>

#define WATCH_SORTS 256u  /* remembered; of more than that nothing is known */
#define WATCH_LEARNT 8u   /* calls of a sort before anything is expected of it */
#define WATCH_MEMORY 64u  /* calls over which an expectation fades */
#define WATCH_GAPS 16u    /* of a sort, remembered */
#define WATCH_LONG 0.002  /* seconds: gaps from here on are long */
#define WATCH_NEAR 64u    /* calls after a long gap for which another one is expected */
#define WATCH_FARTHEST 16 /* times the expectation: what takes longer counts as this */

/* Of `calls` with seconds x and expectation b each; and of how many sorts something is expected.
 * Sums only grow: a reader takes differences. */
struct watch_sums {
    double calls, x, b, xx, xb, bb, sorts;
};

struct watch_sort {
    uint64_t key; /* 0: free */
    unsigned calls;
    double seconds; /* expected */
    /* Seconds until the next call, of any sort: how many were seen, the last ones, and the second
     * shortest of them, once WATCH_LEARNT are known. */
    unsigned gaps;
    float last[WATCH_GAPS], gap;
};

/* Where the program is: in a call, or so many seconds after one, after which it is not in the next
 * for about `gap` seconds (0: not known). `long_gap`: the last one that was long, some calls ago,
 * and after which other gaps were short; 0: there was none. */
struct watch_place {
    int inside;
    double since, gap, long_gap;
};

struct watch {
    struct watch_sort sorts[WATCH_SORTS];
    struct watch_sums sums;
    double long_gap;
    unsigned short_gaps; /* since it */
};

/* Names a sort of call; `bytes` is what one rank gives. */
uint64_t watch_key(unsigned kind, uintptr_t communicator, uint64_t bytes);

/* A call of this sort took so long. */
enum watch_when {
    WATCH_ALONE, /* nothing is being written: it is learned from */
    WATCH_QUIET, /* something is, but not just now: it is learned from, and counts */
    WATCH_BUSY   /* it counts */
};
void watch_note(struct watch *watch, uint64_t key, double seconds, enum watch_when when);

/* So many seconds passed after a call of this sort until the next call began. */
void watch_note_gap(struct watch *watch, uint64_t key, double seconds);
/* What passes after such a call most times, at least: of the last ones the shortest but one, so
 * that one that was interrupted says nothing. 0 until WATCH_LEARNT are known. */
double watch_gap(struct watch *watch, uint64_t key);
/* What the last sort with a long gap has, if its turn was among the last calls; 0 if not. */
double watch_long_gap(const struct watch *watch);

#endif
