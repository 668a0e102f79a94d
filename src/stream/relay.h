/* Runs a plan: reads this node's own segments, receives from the left, hands to the right, and
 * gives every segment to the workers, with a fixed number of buffers.
 *
 * Three kinds of threads: the caller's, which alone speaks to the net and sleeps between looks
 * (it never spins); one that reads, on nodes that read; and the workers. A buffer is free again
 * when its segment has been both handed on and taken.
 *
 * When something fails anywhere, the schedule of messages stays as it was, but they become
 * empty: nobody is left waiting, and the end comes as fast as empty messages travel. Word of a
 * failure goes round the ring ahead of the segments. `abandon` is called as soon as no callback
 * is running, before the messages have ended, because whoever sent a signal may not wait.
 *
 * What must stay true: memory is (n_slots + 2 on a node that reads) * (slot_bytes + 16) bytes;
 * PLAN_TRANSIT_SLOTS <= n_slots <= 64, n_workers <= 64; callbacks never wait for another node.
 */
#ifndef BRG_STREAM_RELAY_H
#define BRG_STREAM_RELAY_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "stream/net.h"
#include "stream/plan.h"

#define RELAY_READ_SLOTS 2u

struct relay_job {
    const struct plan *plan; /* n_nodes == net->size */
    struct stream_net *net;
    uint32_t n_slots;   /* for segments from the left */
    uint32_t n_workers; /* at least 1, unless take is NULL */
    size_t slot_bytes;  /* the longest segment */
    void *context;
    /* Fills buf with one of this node's own segments. Reading thread; 0 or -errno. */
    int (*read)(void *context, uint32_t segment, void *buf, size_t *bytes);
    /* Uses a segment, each exactly once, in any order. Worker threads; 0 or -errno. May be NULL:
     * this node only hands on. */
    int (*take)(void *context, uint32_t worker, uint32_t segment, const void *buf, size_t bytes);
    /* After a failure anywhere: undo. Caller's thread, at most once; no other callback follows. */
    void (*abandon)(void *context);
    /* From time to time: segments that have passed here so far. Caller's thread; may be NULL. */
    void (*progress)(void *context, uint32_t segments);
    const volatile sig_atomic_t *interrupted; /* a signal number, or 0 */
    uint64_t timeout_ns;                      /* longest silence of the neighbours */
    uint64_t grace_ns; /* after an interruption: longest wait for the others */
};

enum relay_end {
    RELAY_DONE = 0,      /* every segment was taken here, and no failure was heard of */
    RELAY_FAILED = 1,    /* *error is what failed here first */
    RELAY_ELSEWHERE = 2, /* another node failed */
    RELAY_STUCK = 3,     /* neighbours are silent: *error is -ETIMEDOUT or -EINTR. Messages are
                            still under way: the buffers are not freed, the net must be aborted */
};

/* Collective over the nodes of the plan. */
enum relay_end relay_run(const struct relay_job *job, int *error);

/* Waits for one request, sleeping between looks. 0, -errno of the net, -ETIMEDOUT, or -EINTR when
 * *interrupted has been set for grace_ns. */
int relay_wait(const struct relay_job *job, struct stream_request *request);

#endif
