/* Calls of MPI in which another rank's death does not end this one: Open MPI writes to the TCP
 * connection that the dead one's kernel has closed, and SIGPIPE ends a program that does not
 * expect it. It is held back in the calling thread while the call lasts, and taken away; that it
 * came says that a rank is gone. */
#ifndef BRG_MPI_QUIET_H
#define BRG_MPI_QUIET_H

#include <signal.h>
#include <time.h>

struct quiet {
    int on;
    sigset_t before;
};

static inline int quiet_pending(void)
{
    sigset_t pending;
    return sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
}

static inline void quiet_only(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGPIPE);
}

static inline struct quiet quiet_begin(void)
{
    struct quiet quiet = {.on = 0};
    sigset_t pipe;
    quiet_only(&pipe);
    if (pthread_sigmask(SIG_BLOCK, &pipe, &quiet.before))
        return quiet;
    /* One that waits already, held back by the program, is the program's. */
    quiet.on = !sigismember(&quiet.before, SIGPIPE) || !quiet_pending();
    return quiet;
}

/* Whether it came meanwhile. */
static inline int quiet_end(const struct quiet *quiet)
{
    struct timespec now = {.tv_sec = 0};
    sigset_t pipe;
    int came = 0;
    if (!quiet->on)
        return 0;
    quiet_only(&pipe);
    while (quiet_pending() && sigtimedwait(&pipe, NULL, &now) == SIGPIPE)
        came = 1;
    pthread_sigmask(SIG_SETMASK, &quiet->before, NULL);
    return came;
}

#endif
