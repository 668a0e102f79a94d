/* What the parts of a one-sided call share. */
#ifndef BRG_MOVE_ONESIDED_PARTS_H
#define BRG_MOVE_ONESIDED_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "move/onesided.h"

#define ONESIDED_MARKS 4

/* Two that take turns; a letter box for each; and where this rank packs what it sends and keeps
 * what it fetched. */
enum {
    WINDOW,
    BOX = 2,
    SCRATCH = 4,
    WINDOWS
};

/* A window's mark says who touches it: the sum of what every rank added.
 *
 * 0: nobody. MARK_OWN: one rank alone, which moves it between its own memory and the file.
 * mark_full: every byte comes once. Anything else: parts of it. A rank that knows its pieces adds,
 * for each, the hash of its end less that of its beginning, so pieces that meet cancel out, and the
 * sum is that of the whole window only if they cover it, each byte once: what an overlap hides from
 * a count of bytes. Any other number (1) says "parts of it" as well. */
#define MARK_OWN UINT64_C(0x6a09e667f3bcc909)

struct onesided {
    struct pgas *pgas;
    struct io_world *world; /* whose messages move; or NULL, and there are windows: */
    uint64_t window_bytes;
    char *windows; /* symmetric, window_bytes each: WINDOWS */
    uint64_t
        *marks; /* symmetric, of rounds, in turn: marks, bytes in letter boxes, one for nothing */
    struct onesided_cost cost;
    struct onesided_last {
        struct onesided_cost before; /* cost until then */
        int called;
        uint64_t window_bytes;
        uint32_t owners; /* 0: no plan was needed */
        char reason[256];
    } last; /* call */
};

/* The part of a window that lies within the call's extent. */
struct span {
    uint32_t owner;
    uint64_t start; /* of the window */
    uint64_t from, until;
};

struct onesided_run {
    const struct onesided_call *call;
    struct onesided *o;
    struct io_plan plan;
    int collect;             /* or scatter */
    uint64_t size;           /* of the file before the call: all ranks know it */
    uint64_t end;            /* no byte from here on is moved */
    pthread_mutex_t storing; /* the store takes one thread at a time */
    struct brg_error failure;
};

/* ---- onesided.c ---- */

/* Between memory and the file, by any thread. Reading past the end is a failure (-ENODATA) unless
 * the call writes: then *got says how much there was. */
int onesided_to_file(struct onesided_run *run, const void *buf, size_t bytes, uint64_t offset,
                     struct brg_error *err);
int onesided_from_file(struct onesided_run *run, void *buf, size_t bytes, uint64_t offset,
                       size_t *got, struct brg_error *err);

/* ---- onesided_show.c: what ranks of other nodes see ---- */

/* Local, when this rank has moved its bytes: where the call shows what it writes, they are shown,
 * and this rank will look again. Fills run->failure. */
void show_own(struct onesided_run *run);
/* Collective, when all have moved: the same. 0 or the code of run->failure. */
int show_all(struct onesided_run *run);
/* Collective, when all have met: what was written before, where this call reaches it. 0 or the code
 * of run->failure. */
int show_before(struct onesided_run *run, const struct io_extent *extent);
/* Local, at the end of a call, failed or not: what is still to be shown. */
void show_ended(struct onesided_run *run, const struct io_extent *extent, int failed);

/* ---- onesided_rounds.c: the way through windows ---- */

/* Collective: each returns 0 or the code of run->failure, which is the same on all ranks. Of a call
 * whose plan and end are known: */
int rounds_move(struct onesided_run *run);
/* 0, or the failure of the lowest rank that has one. *next becomes the least of all ranks'. */
int rounds_agree(struct onesided_run *run, int64_t *next);
/* All know that `rank` is the lowest that has a failure. */
int rounds_hear_failure(struct onesided_run *run, uint32_t rank);

/* ---- onesided_mark.c: pure, but for the requests' cursors ---- */

/* The window of domain d in a round; 0 if it has none. */
int span_of(const struct onesided_run *run, uint32_t d, uint64_t round, struct span *span);
/* Whether this rank has bytes there. */
int span_touched(const struct onesided_run *run, const struct span *span);
/* Whether this rank moves it between the file and its own memory, at *memory, unless others touch
 * it. */
int span_is_own(const struct onesided_run *run, const struct span *span, char **memory);
/* What this rank adds to its mark; 0: nothing. */
uint64_t mark_of(const struct onesided_run *run, const struct span *span);
uint64_t mark_full(const struct span *span);
/* The next round after `round` (-1: the first) in which this rank touches any window, or
 * INT64_MAX. */
int64_t next_round(const struct onesided_run *run, int64_t round);

/* ---- onesided_letter.c: many short pieces for a window out of reach, in one move ---- */

/* A letter is a length in bytes, and groups of pieces of one length that lie one distance apart: a
 * header, and their bytes. */
/* Packs this rank's pieces of a window into `to`. Its length, a multiple of 8; 0 if it takes more
 * than `room`. */
size_t letter_pack(const struct onesided_run *run, const struct span *span, char *to, size_t room);
/* Opens the letters in a box of `posted` bytes, of which `room` may be there. */
void letters_open(const char *box, uint64_t posted, size_t room, const struct span *span,
                  char *window);

/* ---- onesided_serve.c: what owners do, maybe in a thread of their own ---- */

struct serving {
    struct onesided_run *run;
    int64_t write, fill; /* rounds: of the windows to write, and then to fill; INT64_MAX: none */
    unsigned write_turn, fill_turn;
    struct brg_error failure;
    atomic_int done;
};
void serve(struct serving *serving);

/* ---- onesided_ranks.c: what every rank does ---- */

/* This rank's bytes of a round go to their windows, or come from them. Fills run->failure. */
void ranks_move(struct onesided_run *run, int64_t round, unsigned turn);
/* Tells the owners of a round's windows that this rank touches them. */
void ranks_mark(struct onesided_run *run, int64_t round, unsigned turn);

/* Where round number `turn` has its windows, and their marks. */
static inline char *window_at(const struct onesided *o, unsigned turn)
{
    return o->windows + turn % 2 * o->window_bytes;
}

static inline char *box_at(const struct onesided *o, unsigned turn)
{
    return o->windows + (BOX + turn % 2) * o->window_bytes;
}

static inline char *scratch_at(const struct onesided *o)
{
    return o->windows + SCRATCH * o->window_bytes;
}

/* Bytes that were promised to a round's letter box. */
static inline uint64_t *posted_at(const struct onesided *o, unsigned turn)
{
    return o->marks + ONESIDED_MARKS + turn % ONESIDED_MARKS;
}

static inline uint64_t *mark_at(const struct onesided *o, unsigned turn)
{
    return o->marks + turn % ONESIDED_MARKS;
}

#endif
