/* The messages of a handing-on. Headers are sent so that they are done when the receiver has asked
 * for them, and bodies only then: what a node has not asked for takes no memory there.
 *
 * Receives are begun in the order of tasks. The bodies of one source come in that order too; each
 * that must be unpacked has a spare bucket, which is held only for a body whose sender sends it
 * already, so it always becomes free again.
 *
 * Where nodes ask for bytes, a node asks one home in the order of tasks, and home hears in the
 * order in which it will send, one for each spare bucket. What has been asked and not heard waits
 * with MPI, a bitmap for each receive of each node: so it is there when its turn comes. */
#include <errno.h>

#include "base/error.h"
#include "world/fault.h"
#include "move/handoff_parts.h"

#define TAG_HEADER 0x4201
#define TAG_BODY 0x4202
#define TAG_ASK 0x4203

static int net_failed(struct handoff_run *r, int rc, const char *what, uint32_t node)
{
    return brg_error_set(r->err, rc, "%s node %u failed", what, node);
}

/* ---- receiving ---- */

static int begin_header(struct handoff_run *r, struct receive *in)
{
    in->step = RECEIVE_HEADER;
    int rc = r->net->receive(r->net, &in->header, sizeof in->header, in->source, TAG_HEADER,
                             &in->request);
    return rc ? net_failed(r, rc, "receiving from", in->source) : 1;
}

static int begin_receives(struct handoff_run *r)
{
    int moved = 0;
    while (r->asking != r->tail && r->posted - r->received < HANDOFF_RECEIVES) {
        struct open_task *open = handoff_open(r, r->asking);
        if (open->source == HANDOFF_NOBODY) {
            r->asking++;
            continue;
        }
        struct receive *in = &r->receives[r->posted++ % HANDOFF_RECEIVES];
        *in = (struct receive){.open = open, .source = open->source};
        open->receiving++;
        int rc = r->asks ? 0 : begin_header(r, in);
        if (rc < 0)
            return rc;
        open->source = handoff_source(r, open, in->source);
        moved = 1;
    }
    return moved;
}

static void end_receive(struct receive *in)
{
    in->step = RECEIVE_ENDED;
    in->open->receiving--;
}

static int take_header(struct handoff_run *r, struct receive *in)
{
    struct open_task *open = in->open;
    int rc = message_check(&in->header, open->task.window, open->bucket);
    if (!rc && r->scatter && in->header.form == MESSAGE_LIST)
        rc = -EPROTO;
    if (rc)
        return brg_error_set(r->err, rc, "node %u sent a header that does not fit window %llu",
                             in->source, (unsigned long long)open->task.window);
    if (in->header.form == MESSAGE_FAILED)
        r->failed = 1;
    if (in->header.form == MESSAGE_FAILED || in->header.form == MESSAGE_EMPTY)
        end_receive(in);
    else
        in->step = RECEIVE_WAIT;
    return 0;
}

/* Whether an earlier message of the same source has not come to this step. */
static int is_behind_another(const struct handoff_run *r, uint32_t i, enum receive_step step)
{
    const struct receive *in = &r->receives[i % HANDOFF_RECEIVES];
    for (uint32_t j = r->received; j != i; j++) {
        const struct receive *earlier = &r->receives[j % HANDOFF_RECEIVES];
        if (earlier->source == in->source && earlier->step < step)
            return 1;
    }
    return 0;
}

static int ask(struct handoff_run *r, struct receive *in)
{
    const struct bucket *bucket = in->open->bucket;
    in->step = RECEIVE_ASKING;
    int rc = r->net->send(r->net, (const void *)bucket->covered, message_asks_bytes(bucket),
                          in->source, TAG_ASK, &in->request);
    return rc ? net_failed(r, rc, "asking", in->source) : 1;
}

/* Its bucket is clear again, for what comes. */
static int asked(struct handoff_run *r, struct receive *in)
{
    bucket_clear(in->open->bucket, in->open->bucket->start);
    return begin_header(r, in);
}

static int ask_for_body(struct handoff_run *r, struct receive *in)
{
    struct bucket *bucket = in->open->bucket;
    if (r->scatter)
        in->body = message_end_of(&in->header, bucket);
    else if (message_goes_into_place(&in->header, bucket))
        in->body = message_place_of(&in->header, bucket);
    else if ((in->spare = handoff_spare(r)))
        in->body = message_room_of(&in->header, in->spare);
    else
        return 0;
    in->step = RECEIVE_BODY;
    int rc = r->net->receive(r->net, in->body, in->header.body, in->source, TAG_BODY, &in->request);
    return rc ? net_failed(r, rc, "receiving from", in->source) : 1;
}

static int take_body(struct handoff_run *r, struct receive *in)
{
    if (in->open->bucket->owner && !r->h->filled(r->h->context, in->open->t)) {
        in->step = RECEIVE_MERGE;
        return 0;
    }
    int rc = r->scatter ? message_spread(&in->header, in->open->bucket)
                        : message_unpack(&in->header, in->open->bucket, in->body);
    handoff_give_back(r, &in->spare);
    end_receive(in);
    return rc ? brg_error_set(r->err, rc, "node %u sent a body that does not fit window %llu",
                              in->source, (unsigned long long)in->open->task.window)
              : 0;
}

static int merge(struct handoff_run *r, struct receive *in)
{
    int rc = take_body(r, in);
    return rc ? rc : in->step == RECEIVE_ENDED;
}

static int advance_receive(struct handoff_run *r, uint32_t i)
{
    struct receive *in = &r->receives[i % HANDOFF_RECEIVES];
    int done = 0;
    if (in->step == RECEIVE_ENDED)
        return 0;
    if (is_behind_another(r, i, (enum receive_step)(in->step + 1)))
        return 0;
    if (in->step == RECEIVE_WANTED)
        return r->h->wanted(r->h->context, in->open->t) ? ask(r, in) : 0;
    if (in->step == RECEIVE_WAIT)
        return ask_for_body(r, in);
    if (in->step == RECEIVE_MERGE)
        return merge(r, in);
    int rc = r->net->test(r->net, &in->request, &done);
    if (rc)
        return net_failed(r, rc, "receiving from", in->source);
    if (!done)
        return 0;
    io_fault_kill(IO_FAULT_PASS);
    if (in->step == RECEIVE_ASKING)
        return asked(r, in);
    rc = in->step == RECEIVE_HEADER ? take_header(r, in) : take_body(r, in);
    return rc ? rc : 1;
}

int handoff_receive_step(struct handoff_run *r)
{
    int moved = begin_receives(r);
    for (uint32_t i = r->received; moved >= 0 && i != r->posted; i++) {
        int rc = advance_receive(r, i);
        moved = rc < 0 ? rc : moved | rc;
    }
    while (r->received != r->posted &&
           r->receives[r->received % HANDOFF_RECEIVES].step == RECEIVE_ENDED)
        r->received++;
    return moved;
}

/* ---- sending ---- */

/* Whether a message of the task can begin, with a spare bucket where it may need one. */
static int may_send(struct handoff_run *r, struct open_task *open, struct bucket **spare)
{
    *spare = NULL;
    if (!r->asks) {
        if (!open->complete)
            return 0;
        if (!r->scatter || r->failed || !message_needs_room(open->bucket))
            return 1;
    }
    *spare = handoff_spare(r);
    return *spare != NULL;
}

/* Whether all earlier messages to the same target have come to this step. */
static int is_its_turn(const struct handoff_run *r, uint32_t i, enum send_step step)
{
    const struct send *out = &r->sends[i % HANDOFF_SENDS];
    for (uint32_t j = r->sent; j != i; j++) {
        const struct send *earlier = &r->sends[j % HANDOFF_SENDS];
        if (earlier->target == out->target && earlier->step < step)
            return 0;
    }
    return 1;
}

static int begin_header_out(struct handoff_run *r, struct send *out)
{
    out->step = SEND_HEADER;
    int rc = r->net->send_matched(r->net, &out->header, sizeof out->header, out->target, TAG_HEADER,
                                  &out->request);
    return rc ? net_failed(r, rc, "sending to", out->target) : 1;
}

static struct message_header failed_header(const struct open_task *open)
{
    return (struct message_header){.window = open->task.window, .form = MESSAGE_FAILED};
}

static int hear(struct handoff_run *r, struct send *out)
{
    int rc =
        r->net->receive(r->net, (void *)out->spare->covered, message_asks_bytes(out->open->bucket),
                        out->target, TAG_ASK, &out->request);
    return rc ? net_failed(r, rc, "receiving from", out->target) : 1;
}

/* A body that lies in the task's own bucket needs no other. */
static void keep_if_packed(struct handoff_run *r, struct send *out)
{
    if (out->header.form != MESSAGE_BITMAP)
        handoff_give_back(r, &out->spare);
}

/* What was asked for. */
static int pack_asked(struct handoff_run *r, uint32_t i)
{
    struct send *out = &r->sends[i % HANDOFF_SENDS];
    const struct open_task *open = out->open;
    if (!open->complete || !is_its_turn(r, i, SEND_HEADER))
        return 0;
    if (r->failed)
        out->header = failed_header(open);
    else
        message_pack_asked(open->bucket, open->task.window, out->spare, &out->header, &out->body);
    keep_if_packed(r, out);
    return begin_header_out(r, out);
}

static int begin_send(struct handoff_run *r, struct open_task *open, struct bucket *spare)
{
    struct send *out = &r->sends[r->begun++ % HANDOFF_SENDS];
    *out = (struct send){.open = open, .target = open->target, .spare = spare};
    open->sending++;
    open->target = handoff_target(r, open, out->target);
    if (r->asks)
        return hear(r, out);
    if (r->failed)
        out->header = failed_header(open);
    else if (r->scatter)
        message_pack_into(open->bucket, open->task.window, spare, &out->header, &out->body);
    else
        message_pack(open->bucket, open->task.window, &out->header, &out->body);
    keep_if_packed(r, out);
    return begin_header_out(r, out);
}

static int begin_body(struct handoff_run *r, uint32_t i)
{
    struct send *out = &r->sends[i % HANDOFF_SENDS];
    if (!is_its_turn(r, i, SEND_BODY))
        return 0;
    out->step = SEND_BODY;
    int rc =
        r->net->send(r->net, out->body, out->header.body, out->target, TAG_BODY, &out->request);
    return rc ? net_failed(r, rc, "sending to", out->target) : 1;
}

static int advance_send(struct handoff_run *r, uint32_t i)
{
    struct send *out = &r->sends[i % HANDOFF_SENDS];
    int done = 0;
    if (out->step == SEND_ENDED)
        return 0;
    if (out->step == SEND_PACKED)
        return pack_asked(r, i);
    if (out->step == SEND_WAIT)
        return begin_body(r, i);
    int rc = r->net->test(r->net, &out->request, &done);
    if (rc)
        return net_failed(r, rc, "sending to", out->target);
    if (!done)
        return 0;
    io_fault_kill(IO_FAULT_PASS);
    if (out->step == SEND_ASKED) {
        out->step = SEND_PACKED;
        return 1;
    }
    if (out->step == SEND_HEADER && out->header.body) {
        out->step = SEND_WAIT;
        return 1;
    }
    handoff_give_back(r, &out->spare);
    out->open->sending--;
    out->step = SEND_ENDED;
    return 1;
}

/* The next task to be handed on, in order. */
static struct open_task *next_to_give(struct handoff_run *r)
{
    while (r->giving != r->tail && handoff_open(r, r->giving)->target == HANDOFF_NOBODY)
        r->giving++;
    return r->giving == r->tail ? NULL : handoff_open(r, r->giving);
}

int handoff_send_step(struct handoff_run *r)
{
    int moved = 0;
    for (uint32_t i = r->sent; i != r->begun; i++) {
        int rc = advance_send(r, i);
        if (rc < 0)
            return rc;
        moved |= rc;
    }
    while (r->sent != r->begun && r->sends[r->sent % HANDOFF_SENDS].step == SEND_ENDED)
        r->sent++;
    while (r->begun - r->sent < HANDOFF_SENDS) {
        struct open_task *open = next_to_give(r);
        struct bucket *spare;
        if (!open || !may_send(r, open, &spare))
            break;
        int rc = begin_send(r, open, spare);
        if (rc < 0)
            return rc;
        moved = 1;
    }
    return moved;
}
