/* What each rank moves by itself, before the ranks meet for a call or when they have met; what few
 * of them read for all. Arithmetic only. */
#ifndef BRG_MOVE_PLAN_OWN_H
#define BRG_MOVE_PLAN_OWN_H

#include "move/plan.h"

/* Whether runs, by `pitch` from one to the next, are written one by one: more lies between them
 * than is worth writing again. */
int plan_is_apart(uint64_t run, uint64_t pitch);

/* What one rank asks of a call, as far as it knows without the others. */
struct plan_share {
    int writes;
    struct request_spread spread;
    enum store_where where; /* what is there now */
};

/* Whether it is worth a look where a rank's bytes are, for which it opens the file: not if its runs
 * lie close however that is; and what several nodes share is not on a disk of one. Of one run only
 * where a disk is read in one stream. */
int plan_may_look(const struct io_hints *hints, const struct plan_place *place,
                  const struct plan_share *share, const struct plan_ranks *ranks);

/* Whether a rank may move what it asks for before the ranks have met for the call: one run, or long
 * ones, if `direct` is what plan_make would choose if all had such; several that are so few, or so
 * far apart, that nobody gains by moving them together. What lies on a disk waits for the meeting:
 * how to read it depends on what the others want. */
int plan_may_early(const struct io_hints *hints, const struct plan_place *place,
                   const struct plan_share *share, const struct plan_ranks *ranks);

/* The same when they have met, of several runs, where it is known how far those of all ranks reach.
 * share: the most stretches, runs and length of any rank, the least of all else. */
int plan_is_scattered(const struct io_hints *hints, const struct io_extent *extent,
                      const struct plan_share *share, const struct plan_ranks *ranks);

/* Then, too: how many ranks read all of it through windows, from a disk that likes to be read in
 * one stream; 0: it is read as if it did not. */
uint32_t plan_readers(const struct io_hints *hints, const struct plan_place *place,
                      const struct io_extent *extent, const struct plan_share *share,
                      const struct plan_ranks *ranks);

/* Then, of what is read from a disk: whether nobody need ask for what comes next, as the ranks
 * together want most of what lies there, and reading on, as the kernel does, brings the others'. */
int plan_reads_on(const struct io_extent *extent, const struct plan_share *share,
                  const struct plan_ranks *ranks);

#endif
