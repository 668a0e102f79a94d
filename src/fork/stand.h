/* A rank process stands for the rank that was forked for it: signals, stops and the end pass on.
 *
 * What a launcher sends to a process group has reached the rank, too; what it sends to the process
 * that it started has not. The witness tells them apart: a task that shares this process's memory,
 * is in its group, and notes what signals it gets. For brigade-rank.
 */
#ifndef BRG_FORK_STAND_H
#define BRG_FORK_STAND_H

#include "fork/request.h"

#include <sys/types.h>

struct standing {
    pid_t witness;
    int signals; /* a signalfd of all signals, which are blocked */
    int notes;   /* from the witness */
    void *stack; /* of the witness */
};

/* Starts the witness. 0 or -errno. */
int standing_begin(struct standing *s, int signals);

/* Ends it: nothing was started. */
void standing_undo(struct standing *s);

/* Lets the rank at the end of `line` begin; passes on what comes, until it has ended; then ends
 * as it ended. `joined`: the rank is in this process's group. `open`: descriptors that are the
 * rank's now, and closed here. */
_Noreturn void standing_until_the_end(struct standing *s, int template, int line, int joined,
                                      const struct fork_open *open);

#endif
