/* Windows from node to node, in one direction: collecting (write) or scattering (read).
 *
 * Run by the leader of each node, at the same time, on its thread that may call MPI. It never
 * waits inside MPI; when nothing moves it calls `rest`. Every node is given its own tasks, in the
 * one order that all nodes share; what a task waits for is an earlier task, or the same task on a
 * node before it, so that a fixed number of buckets never waits in a circle.
 *
 *   collect, simple      every node that has bytes of a window sends them to its home
 *   collect, brigade     to the next node (in the ring, towards home) that has some, which hands
 *                        on its own with them: each node receives from one and sends to one
 *   scatter, simple      each node that wants bytes of a window asks its home for them, by a bitmap
 *   scatter, brigade     home sends the window to the next node that wants some, and so on
 *
 * A message is a small header, then the covered bytes: as they lie where they are one run, packed
 * behind a bitmap (or a list of runs, where shorter) where they are not. Packing is done in place.
 * With an owner map, owners travel too, and what comes waits until this node's ranks have put.
 *
 * After a failure anywhere the messages stay, and become empty. */
#ifndef BRG_IO_HANDOFF_H
#define BRG_IO_HANDOFF_H

#include "brigade/error.h"
#include "move/bucket.h"
#include "stream/net.h"

#define HANDOFF_SPARES 8u

struct handoff_task {
    uint64_t window;
    uint32_t home; /* node */
};

struct handoff {
    struct stream_net *net; /* leaders: rank is the node's number */
    int brigade;            /* or simple */
    uint32_t n_tasks;       /* of this node, in order */
    /* [n_spares] Each is room for a message to be packed or unpacked, as large as any bucket. At
     * least one; more than HANDOFF_SPARES do not help. */
    struct bucket *spares;
    uint32_t n_spares;
    void *context;

    void (*task)(void *context, uint32_t t, struct handoff_task *task);
    /* Whether node has (collect) or wants (scatter) bytes of task t's window. */
    int (*concerns)(void *context, uint32_t t, uint32_t node);
    /* The bucket of task t, or NULL while its slot is still another task's: look again. Called for
     * tasks in order; several are open at once. */
    struct bucket *(*bucket)(void *context, uint32_t t);
    /* Collect: this node's ranks have put theirs. Scatter: asked at home only: it has been read. */
    int (*filled)(void *context, uint32_t t);
    /* Scatter, simple, not at home: this node's ranks have marked the bytes that they want as if
     * they were covered. Asked again until it is so. */
    int (*wanted)(void *context, uint32_t t);
    /* Collect, at home: everything has come, the writer may have it. Scatter, not at home: it has
     * come, this node's ranks may take theirs. */
    void (*arrived)(void *context, uint32_t t);
    /* It has been handed on, to all who get it from here: collect, not at home; scatter, every
     * node, also where nobody gets it from here. In a collection the bucket's content is gone. */
    void (*handed)(void *context, uint32_t t);
    /* A failure is known (then messages are empty): 0 or -errno. -EOWNERDEAD: leave at once. */
    int (*failed)(void *context);
    /* Sleeps until something happens on this node, at most ns; looks for words from other nodes. */
    void (*rest)(void *context, uint64_t ns);
};

/* Collective over the leaders. 0; -EOWNERDEAD from `failed`; or -errno of the net: then messages
 * are still under way, the buckets must stay, and the net is of no more use. */
int handoff_collect(struct handoff *h, struct brg_error *err);
int handoff_scatter(struct handoff *h, struct brg_error *err);

#endif
