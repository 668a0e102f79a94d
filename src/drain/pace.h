/* How fast bytes that were held back may go to the file system. Pure: time is the caller's.
 *
 * Two limits: a cap that always holds, and one that follows how long the program's own collective
 * calls take (watch.h). That one falls by half when they take longer than allowed, more clearly
 * than chance would, as MS Manners decides (Douceur and Bolosky, SOSP 1999), and rises when they do
 * not: twofold until it was too much once, then half of the way to what was too much last, then
 * beyond it by small steps, then twofold again, as BIC-TCP looks for a rate (Xu, Harfoush and Rhee,
 * INFOCOM 2004). Where nothing can be told, there is no limit but the cap. At the least rate pieces
 * are so far apart that calls between them tell what is slow for reasons of its own (pmpi.h).
 *
 * Where the program computes between its calls for long enough, and for much the same time each
 * time, pieces go in those gaps, as large as fit, and not slowly at first: what has gone when the
 * next call begins cannot hold it up. */
#ifndef BRG_IO_PACE_H
#define BRG_IO_PACE_H

#include "drain/watch.h"

#define PACE_FEWEST 5.0               /* calls before anything is decided */
#define PACE_MOST 64.0                /* calls after which what is not clear is decided */
#define PACE_SIGMAS 2.0               /* standard errors that make it clear */
#define PACE_BEYOND 1.25              /* times what was too much last: that is no longer so */
#define PACE_SETTLE_NS 50000000ull    /* between two changes */
#define PACE_SILENCE_NS 3000000000ull /* without calls: nobody to give way to */
#define PACE_FIRST 16.0               /* the part of full speed that it begins with */
#define PACE_LEAST 256.0              /* the least part of it, */
#define PACE_LEAST_RATE 4194304.0     /* or, if that is less, bytes a second */
#define PACE_LEAST_HEARD 32.0         /* the least part of it for what others say */

#define PACE_ANY 100.0            /* allowed slowdown from which on nothing is held back */
#define PACE_GAP_USED 0.95        /* the part of a gap at the end of which all must have gone */
#define PACE_GAP_BROKEN 4.0       /* gaps after which this one is another sort of gap */
#define PACE_GAP_TRUST 4.0        /* times what is allowed, before what goes in gaps is held back */
#define PACE_MISSES 2.0           /* what a piece takes longer than expected, by the mean miss */
#define PACE_PIECES_S 8.0         /* pieces a second, at least, where a cap holds */
#define PACE_SMALLEST (16u << 10) /* bytes of a piece, of which it is a multiple, */
#define PACE_LARGEST (1u << 20)   /* and blocks of checksums fit */
#define PACE_POLL_NS 200000ull    /* how often the program's next gap is looked for */

enum pace_verdict {
    PACE_UNKNOWN,
    PACE_FINE,
    PACE_SLOW
};

struct pace {
    double cap;      /* bytes a second; 0: none */
    double slowdown; /* allowed */
    int careful;     /* something is known of the calls: it begins slowly, */
    int gaps;        /* but where it uses gaps */
    double rate;     /* bytes a second for now; 0: no limit */
    double harmed;   /* the rate that was too much last; 0: none was */
    double full;     /* bytes a second that the file system takes, lately */
    /* the last pieces, each counting 1/16 less than the next: how many, sums of MiB, of seconds,
     * of their products; and how far from what was expected a piece's seconds were */
    double n, x, y, xx, xy, miss;
    size_t tried; /* the largest yet: what is far larger is not foreseen by that line */
    uint64_t changed_ns;
    struct watch_sums mark; /* sums when it changed */
    uint64_t last_ns;       /* when the last piece was let go, and its size */
    size_t last_bytes;
};

void pace_start(struct pace *pace, double cap, double slowdown, const struct watch_sums *sums,
                uint64_t now_ns);

/* What the calls between two sums tell. */
enum pace_verdict pace_judge(const struct watch_sums *before, const struct watch_sums *after,
                             double slowdown);

/* Changes the rate if the calls up to now say so, or if `heard`: another rank found its slow. */
void pace_look(struct pace *pace, const struct watch_sums *sums, int heard, uint64_t now_ns);

/* When the next piece may go. `hurry`: the program waits for it, so only the cap counts. */
uint64_t pace_next_ns(const struct pace *pace, int hurry);

/* How many bytes the next piece has where the program is at this place. */
size_t pace_piece(struct pace *pace, const struct watch_place *place);

/* How long such a piece shall wait for the program's next gap before one looks again; 0: it may go,
 * as far as gaps are concerned. */
uint64_t pace_gap_ns(const struct pace *pace, size_t bytes, const struct watch_place *place,
                     int hurry);

/* A piece goes now, and after it: how long the store took. */
void pace_go(struct pace *pace, size_t bytes, int hurry, uint64_t now_ns);
void pace_gone(struct pace *pace, size_t bytes, uint64_t took_ns);

#endif
