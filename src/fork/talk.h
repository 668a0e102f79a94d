/* What rank process and template say to each other, over a private socket that keeps messages
 * apart. Rank processes send their requests one after the other, each when it is its turn: the
 * kernel lets as many of a user's descriptors be on their way as a process may have open, and all
 * that wait for a template to warm up would together have more. Descriptors go with messages; what
 * the rank process is goes in a file in memory:
 *
 *   struct fork_request | numbers of the descriptors, int32_t each | environment, NUL after each
 */
#ifndef BRG_FORK_TALK_H
#define BRG_FORK_TALK_H

#include "fork/self.h"

enum fork_kind {
    FORK_REQUEST =
        1, /* rank process: with the file in memory, and an end of the line to its rank */
    FORK_DESCRIPTORS, /* rank process: with the next of its descriptors */
    FORK_SIGNAL,      /* rank process: value is the signal, other whether for the group */
    FORK_STARTED,     /* rank, on that line: value is its pid, other whether it joined the group */
    FORK_GO,          /* rank process, on that line: signals that came before, a bit each */
    FORK_REFUSED,     /* template, or rank on that line: text says why */
    FORK_STOPPED,     /* template: value is the signal */
    FORK_CONTINUED,   /* template */
    /* template: value is the status as wait(2) gives it, other whether the template will end with
     * its last rank: no rank process is still to come */
    FORK_ENDED,
    FORK_TURN, /* template: this rank process may send its request */
    FORK_ALONE /* witness: the rank process has ended, and not the whole of its group */
};

enum {
    FORK_TEXT = 112,
    FORK_PASSED = 200 /* descriptors that a message takes at most; the kernel's limit is 253 */
};

struct fork_message {
    uint32_t kind;
    int32_t value, other;
    uint32_t n_passed;
    uint64_t signals; /* of FORK_GO */
    char text[FORK_TEXT];
};

#define FORK_MAGIC UINT64_C(0x004b524f46475242) /* "BRGFORK\0" */

struct fork_request {
    uint64_t magic, bytes; /* of the whole file */
    struct fork_self self;
    uint32_t n_descriptors, n_variables;
    uint64_t descriptors_off, environment_off, environment_bytes;
};

/* A message with text, cut if need be; `text` may be NULL. */
struct fork_message fork_message(enum fork_kind kind, int32_t value, int32_t other,
                                 const char *text);

/* Sends a message with m->n_passed descriptors. 0 or -errno; waits while there is no room, and for
 * some seconds while too many of this user's descriptors are on their way. */
int fork_send(int to, const struct fork_message *m, const int *passed);

/* Lets a stopped process go on, by a SIGCONT that says that nobody is to be told of it. */
void fork_wake(int pid);

/* Whether a signal that a signalfd gave is one of those. */
struct signalfd_siginfo;
int fork_is_wake(const struct signalfd_siginfo *info);

/* Receives one, and up to FORK_PASSED descriptors (close-on-exec). 1, 0 at the end, or -errno;
 * -EAGAIN if `wait` is 0 and there is none. All that was sent comes before the end, also if the
 * other side has closed without reading what it was sent. */
int fork_receive(int from, struct fork_message *m, int *passed, int wait);

#endif
