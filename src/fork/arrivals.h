/* Signals that came to a rank process: which were for its group, and which for it alone.
 *
 * The witness (see stand.h) gets what is sent to the group, too, and notes it, before or after
 * this process reads it. Neither gets all: a signal that is sent again before it was read comes
 * once, and a SIGCONT takes back the stops that wait to be read, a stop the SIGCONTs. So signals
 * are not counted:
 *
 *   - A note stands for every such signal that waits to be judged, and for those that come until
 *     this process has found no more signals ARRIVALS_APART_NS after it: by then it has had its
 *     own of what the witness had, however late it is.
 *   - Of stops and SIGCONTs the last one holds: if that was for the group, so are those before it,
 *     whose notes it may have taken back. (Was one for this process alone, then it is as if the
 *     rank had been slow: the kernel would have taken it back from the rank.) The last one itself
 *     may not be read here, if the template let this process go on, by a SIGCONT: its note tells
 *     then.
 *   - What waits ARRIVALS_WAIT_NS without a note was for this process alone. That time begins anew
 *     for all with a stop or any SIGCONT: the witness may have been stopped, too, or have lost its
 *     own to it.
 *
 * Pure: times are handed in, and only go forward; none is 0.
 */
#ifndef BRG_FORK_ARRIVALS_H
#define BRG_FORK_ARRIVALS_H

#include <stdint.h>

enum {
    ARRIVALS_SIGNALS = 65, /* numbers are below it */
    ARRIVALS_WAITING = 64
};

/* Between sending one signal to this process and to the witness, where a step's are sent it one by
 * one. */
#define ARRIVALS_APART_NS UINT64_C(20000000)
/* For that, and for a witness on a busy machine. */
#define ARRIVALS_WAIT_NS UINT64_C(300000000)

/* All zero: nothing came. */
struct arrivals {
    uint64_t noted_ns[ARRIVALS_SIGNALS]; /* of the last note that counts; 0: none */
    uint32_t n;
    struct arrival {
        uint32_t number;
        int for_group;           /* that is known; otherwise it waits */
        int before_wake;         /* arrivals_woken() came since */
        uint64_t since_ns;       /* when that began */
    } waiting[ARRIVALS_WAITING]; /* in the order in which they came */
};

/* This process has read a signal; there is room (arrivals_full()). */
void arrivals_read(struct arrivals *a, uint32_t number, uint64_t now_ns);

/* The witness has noted one. */
void arrivals_noted(struct arrivals *a, uint32_t number, uint64_t now_ns);

/* This process began to read signals, has handed over all, and found no more. */
void arrivals_had_all(struct arrivals *a, uint64_t began_ns);

/* This process has read the template's SIGCONT. */
void arrivals_woken(struct arrivals *a, uint64_t now_ns);

/* Takes out the next signal that is known to be for the group, or not. Whether there is one. */
int arrivals_next(struct arrivals *a, uint64_t now_ns, uint32_t *number, int *for_group);

/* Whether there is no room: then nothing is read before something was taken out. */
int arrivals_full(const struct arrivals *a);

/* Whether such a signal waits. */
int arrivals_has(const struct arrivals *a, uint32_t number);

/* In how many milliseconds to go on even if nothing comes; -1: never. */
int arrivals_patience_ms(const struct arrivals *a, uint64_t now_ns);

#endif
