/* A process beside the one that works: it tells the launcher's end that this node lives, and takes
 * away what the working one leaves if it is killed.
 *
 * The line on standard error, every pulse_s seconds and at the start, is
 *     pulse RANK SIZE HOST        (SIZE 0: not known), and at the end: pulse RANK SIZE HOST end
 * The keeper speaks no MPI and holds little memory: what kills the worker (too much memory, a
 * fault in MPI) spares it. Whichever of the two is killed, the other cleans up. Signals that ask to
 * end are passed on to the worker.
 */
#ifndef BRG_STAGE_KEEPER_H
#define BRG_STAGE_KEEPER_H

#include <stdint.h>

struct keeper {
    const char *base, *job; /* what a killed worker may have left; job NULL: nothing */
    unsigned pulse_s;       /* at least 1 */
    int explains;           /* a killed worker becomes a JSON object with "ok": false */
};

/* Runs work(context) in a process of its own; returns its exit code, in both processes. */
int keeper_run(const struct keeper *k, int (*work)(void *), void *context);

/* What the launcher says in the environment, before MPI has started. */
uint32_t keeper_rank(void);
long keeper_size(void); /* processes in this step; 0: it says nothing */

#endif
