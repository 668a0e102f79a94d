/* A rank process asks the template of its node for a rank, and starts the template if it is the
 * first. For brigade-rank. */
#ifndef BRG_FORK_BEGIN_H
#define BRG_FORK_BEGIN_H

#include "fork/talk.h"

/* What the template finds in its environment: where it stops ("python": in its `site`; "main",
 * "preinit": before main, or before any constructor), and "SOCKET:PID:RANKS", which counts for that
 * process only. */
#define BRG_FORK_VARIABLE "BRIGADE_FORK"
#define BRG_FORK_SOCKET_VARIABLE "BRIGADE_FORK_SOCKET"
#define BRG_FORK_PINS_VARIABLE "BRIGADE_FORK_PINS" /* the user's wishes, as Python reads them */

struct fork_job {
    const char *folder;   /* of the job on this node */
    const char *kind;     /* of template */
    const char *pins;     /* for BRG_FORK_PINS_VARIABLE, or NULL */
    char *const *program; /* its words */
    int n_local;          /* ranks of this node, or 0: not known */
    int only_one;         /* a node has no template for a second command: wrappers may make many */
    /* Why the program would not stop where a template does, or NULL. Asked only by who is about to
     * start one, as it looks at files. */
    const char *(*doubt)(void *context);
    /* Executes the program with `environ` as it is; returns only if it could not. */
    void (*execute)(void *context);
    void *context;
};

/* Has this process's rank forked, and stands for it until it ends; then ends as it ended. Returns
 * only if the rank is to be started in the ordinary way, and then this process is as it was: with
 * the reason in words, which is also noted in the job's folder; NULL if there is nothing to say
 * (the only rank of its node). */
const char *fork_stand_in(const struct fork_job *job);

#endif
