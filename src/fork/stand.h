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
    pid_t template; /* the template, if it is a child of this process, otherwise 0 */
    pid_t rank;
    int joined;  /* whether the rank was in this process's group when it was forked */
    int signals; /* a signalfd of all signals, which are blocked */
    int notes;   /* from the witness */
    void *stack; /* of the witness */
};

/* Whether the signal does nothing to a process without handlers, as this one is. */
int standing_unnoticed(int number);

/* Starts the witness; `template` and `rank` are 0 after it. 0 or -errno. */
int standing_begin(struct standing *s, int signals);

/* Ends it: nothing was started. */
void standing_undo(struct standing *s);

/* Lets the rank at the end of `line` begin; passes on what comes, until it has ended; then ends
 * as it ended. `socket`: to the template. `open`: descriptors that are the rank's now, and closed
 * here.
 *
 * Where the template is a child of this process, and the rank ended well, it waits for the
 * template, which ends with the last rank of the node, for up to 5 s: what all of them used is then
 * in what this process used (getrusage(2), RUSAGE_CHILDREN), where whoever accounts for the job
 * adds it up. */
_Noreturn void standing_until_the_end(struct standing *s, int socket, int line,
                                      const struct fork_open *open);

#endif
