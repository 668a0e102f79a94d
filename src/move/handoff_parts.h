/* What the parts of a handing-on share: the tasks that are open, the messages that are under way.
 * Not for others. */
#ifndef BRG_IO_HANDOFF_PARTS_H
#define BRG_IO_HANDOFF_PARTS_H

#include "move/handoff.h"
#include "move/handoff_message.h"

#define HANDOFF_OPEN 64u    /* tasks; more never help: there are fewer buckets */
#define HANDOFF_RECEIVES 8u /* under way at a time, in the order of tasks */
#define HANDOFF_SENDS 4u
#define HANDOFF_NOBODY UINT32_MAX

/* A task whose bucket is here. */
struct open_task {
    uint32_t t;
    struct handoff_task task;
    struct bucket *bucket;
    uint32_t source, target;      /* the node to ask, to serve next; HANDOFF_NOBODY: no more */
    uint32_t receiving, sending;  /* messages under way */
    int complete, arrived, ended; /* everything is in; `arrived` was called; closed */
};

enum receive_step {
    RECEIVE_WANTED, /* what this node's ranks want of it is not known yet */
    RECEIVE_ASKING, /* that is on its way */
    RECEIVE_HEADER,
    RECEIVE_WAIT, /* for its turn to have the body, one of a source at a time, and for a spare */
    RECEIVE_BODY,
    RECEIVE_MERGE, /* with owner maps, for this node's ranks to have put theirs: one at a time */
    RECEIVE_ENDED
};

struct receive {
    enum receive_step step;
    struct open_task *open;
    uint32_t source;
    struct bucket *spare; /* NULL: none */
    void *body;
    struct message_header header;
    struct stream_request request;
};

enum send_step {
    SEND_ASKED,  /* what the other wants is on its way, to the spare bucket's bitmap */
    SEND_PACKED, /* for the bytes, and for its turn: headers go to one target in order */
    SEND_HEADER,
    SEND_WAIT, /* for its turn: the bodies to one target are sent in the order of their headers */
    SEND_BODY,
    SEND_ENDED
};

struct send {
    enum send_step step;
    struct open_task *open;
    uint32_t target;
    struct bucket *spare; /* NULL: none */
    const void *body;
    struct message_header header;
    struct stream_request request;
};

struct handoff_run {
    struct handoff *h;
    struct stream_net *net;
    int scatter;
    int asks;   /* nodes say which bytes they want */
    int failed; /* here or elsewhere: messages are empty */
    struct brg_error *err;
    struct open_task open[HANDOFF_OPEN]; /* a ring, in the order of tasks */
    uint32_t head, tail;
    uint32_t asking, giving; /* first open task with a source to ask, with a target to serve */
    struct receive receives[HANDOFF_RECEIVES]; /* a ring */
    uint32_t received, posted;
    struct send sends[HANDOFF_SENDS]; /* a ring */
    uint32_t sent, begun;
    uint32_t spares_used;     /* a bit for each */
    struct handoff_run *next; /* of those that were left with messages under way */
};

/* Steps: 1 when something moved, 0, or -errno of the net. */
int handoff_receive_step(struct handoff_run *r);
int handoff_send_step(struct handoff_run *r);

/* Who this node receives task `open` from, sends it to, after `last` (HANDOFF_NOBODY: the first).
 */
uint32_t handoff_source(const struct handoff_run *r, const struct open_task *open, uint32_t last);
uint32_t handoff_target(const struct handoff_run *r, const struct open_task *open, uint32_t last);

/* A spare bucket for a message, or NULL while all are used. */
static inline struct bucket *handoff_spare(struct handoff_run *r)
{
    for (uint32_t i = 0; i < r->h->n_spares && i < HANDOFF_SPARES; i++)
        if (!(r->spares_used & 1u << i)) {
            r->spares_used |= 1u << i;
            return &r->h->spares[i];
        }
    return NULL;
}

static inline void handoff_give_back(struct handoff_run *r, struct bucket **spare)
{
    if (*spare)
        r->spares_used &= ~(1u << (*spare - r->h->spares));
    *spare = NULL;
}

static inline struct open_task *handoff_open(struct handoff_run *r, uint32_t i)
{
    return &r->open[i % HANDOFF_OPEN];
}

#endif
