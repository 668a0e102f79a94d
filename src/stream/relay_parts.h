/* What the two halves of the relay share: its buffers and the state of each. Not for others. */
#ifndef BRG_STREAM_RELAY_PARTS_H
#define BRG_STREAM_RELAY_PARTS_H

#include <pthread.h>

#include "stream/relay.h"

#define RELAY_MAX_SENDS 2
#define RELAY_MAX_SLOTS 64u
#define RELAY_MAX_WORKERS 64u

struct message {
    uint32_t segment;
    uint32_t failed; /* no bytes follow, and none will */
    uint64_t bytes;
    char body[];
};

enum slot_state {
    SLOT_FREE,
    SLOT_RECEIVING,
    SLOT_READING,
    SLOT_HELD
};

struct slot {
    enum slot_state state;
    uint32_t segment;
    int to_send, to_take; /* HELD: what is still owed; both 0 frees it */
    int sending, taking;  /* under way */
    struct stream_request request;
    struct message *message;
};

struct relay {
    const struct relay_job *job;
    struct stream_net *net;
    uint32_t left, right;

    pthread_mutex_t lock; /* guards everything down to `error` */
    pthread_cond_t to_main, to_workers, to_reader;
    struct slot *slots; /* n_slots for the left neighbour, then RELAY_READ_SLOTS to read into */
    uint32_t n_slots;
    uint32_t n_taken;
    uint32_t busy; /* callbacks running */
    int stop;      /* threads are to end */
    int failed;    /* here or elsewhere */
    int error;     /* the first failure here */

    /* Only the caller's thread looks at these. */
    struct plan_walk in, out;
    uint32_t want, give;                  /* next segment to post a receive for, to send */
    struct slot *posted[RELAY_MAX_SLOTS]; /* receives in order; a ring */
    uint32_t post_head, post_tail;
    struct message empty[RELAY_MAX_SENDS]; /* own segments that were never read */
    struct {
        struct slot *slot;
        struct stream_request request;
    } sends[RELAY_MAX_SENDS];
    uint32_t status_out, status_in;
    struct stream_request status_out_request, status_in_request;
    int status_sent, status_heard, abandoned, net_error;
    uint32_t n_received, n_workers_running;
    int reader_running;
    pthread_t reader, workers[RELAY_MAX_WORKERS];
};

/* With the lock held: frees the slot if nothing is owed to anybody. */
void relay_slot_settle(struct relay *r, struct slot *s);

/* With the lock held: notes a failure of this node. */
void relay_fail_here(struct relay *r, int error);

/* Starts the reading thread, if this node reads, and the workers. 0 or -errno; some may run even
 * after a failure. */
int relay_start_threads(struct relay *r);

/* Called with the lock held; gives it back, and returns when no thread runs any more. */
void relay_stop_threads(struct relay *r);

#endif
