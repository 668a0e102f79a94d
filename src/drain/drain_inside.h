/* What the parts of a drain share: drain.c, which writers call, and drain_thread.c.
 *
 *   bytes:    .....[ entry | entry | entry ].....    a ring; positions only grow
 *                  ^ tail                  ^ head
 *
 * A writer takes room under the lock, copies without it, and marks its entry ready; the thread
 * waits for the oldest entry to be ready. So several writers copy at once, and bytes leave in the
 * order in which room was taken. */
#ifndef BRG_DRAIN_INSIDE_H
#define BRG_DRAIN_INSIDE_H

#include <pthread.h>

#include "drain/drain.h"
#include "drain/pace.h"

#define MAX_ENTRIES 4096u /* waiting at once; a power of two */

struct entry {
    uint64_t offset; /* in the file */
    uint64_t at;     /* position in the ring */
    size_t bytes;
    int ready;
};

struct drain {
    struct io_store *store;
    int async;
    uint64_t room; /* bytes of the ring */
    size_t most;   /* bytes of an entry: a power of two, so that entries end where blocks do */

    pthread_mutex_t lock;
    pthread_cond_t work;  /* for the thread: an entry is ready, a job, the end */
    pthread_cond_t moved; /* for the others: room, an entry gone, a job done */
    pthread_t thread;
    int threaded, stop;
    int waiting; /* how many threads of the program wait for something */

    struct pace pace;
    int paced, heard;
    uint64_t done_bytes, done_ns, held_ns; /* for people */

    char *ring;
    uint64_t head, tail;
    struct entry *entries;
    unsigned first, next; /* entries first..next-1 wait; numbers only grow */

    drain_job *job;
    void *context;
    int ended;                /* 1 when the job has */
    struct brg_error failure; /* the first; code 0: none */
};

/* The thread: writes what is ready, oldest first, and runs the job, until `stop`. */
void *drain_thread(void *drain);

/* With the lock held, which is let go while the job runs. */
void drain_do_job(struct drain *d);

#endif
