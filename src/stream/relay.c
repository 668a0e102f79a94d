/* See relay.h. The caller's thread is a loop of small steps, each of which says whether it moved
 * anything; when none did, it sleeps until a worker wakes it or a moment has passed. */
#include "stream/relay.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "stream/relay_parts.h"

#define TAG_SEGMENT 1
#define TAG_STATUS 2
#define NAP_MIN_NS 20000u
#define NAP_MAX_NS 400000u

static void nap(uint64_t ns)
{
    struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
    nanosleep(&t, NULL);
}

/* ---- the net, called without the lock: a look at it may copy a megabyte ---- */

static int net_note(struct relay *r, int rc)
{
    pthread_mutex_lock(&r->lock);
    if (rc && !r->net_error)
        r->net_error = rc;
    return rc;
}

static int net_send(struct relay *r, const void *buf, size_t bytes, int tag,
                    struct stream_request *request)
{
    pthread_mutex_unlock(&r->lock);
    return net_note(r, r->net->send(r->net, buf, bytes, r->right, tag, request));
}

static int net_receive(struct relay *r, void *buf, size_t bytes, int tag,
                       struct stream_request *request)
{
    pthread_mutex_unlock(&r->lock);
    return net_note(r, r->net->receive(r->net, buf, bytes, r->left, tag, request));
}

static int net_done(struct relay *r, struct stream_request *request)
{
    int done = 0;
    pthread_mutex_unlock(&r->lock);
    int rc = r->net->test(r->net, request, &done);
    return !net_note(r, rc) && done;
}

/* ---- steps of the caller's thread; each returns whether something moved ---- */

static int post_receives(struct relay *r)
{
    int moved = 0;
    for (uint32_t i = 0; i < r->job->n_slots && r->want != PLAN_END; i++) {
        struct slot *s = &r->slots[i];
        if (s->state != SLOT_FREE)
            continue;
        s->state = SLOT_RECEIVING;
        s->segment = r->want;
        if (net_receive(r, s->message, sizeof *s->message + r->job->slot_bytes, TAG_SEGMENT,
                        &s->request))
            break;
        r->want = plan_walk_next(&r->in);
        r->posted[r->post_tail++ % RELAY_MAX_SLOTS] = s;
        moved = 1;
    }
    return moved;
}

static int finish_receives(struct relay *r)
{
    int moved = 0;
    while (r->post_head != r->post_tail) {
        struct slot *s = r->posted[r->post_head % RELAY_MAX_SLOTS];
        if (!net_done(r, &s->request))
            break;
        r->post_head++;
        r->n_received++;
        moved = 1;
        if (s->message->segment != s->segment || s->message->bytes > r->job->slot_bytes)
            relay_fail_here(r, -EPROTO);
        if (s->message->failed)
            r->failed = 1;
        s->to_send = plan_forwards(r->job->plan, r->net->rank, s->segment);
        s->to_take = r->job->take && !s->message->failed;
        s->state = SLOT_HELD;
        relay_slot_settle(r, s);
        pthread_cond_signal(&r->to_workers);
    }
    return moved;
}

static struct slot *slot_of(struct relay *r, uint32_t segment)
{
    for (uint32_t i = 0; i < r->n_slots; i++)
        if (r->slots[i].state == SLOT_HELD && r->slots[i].to_send && r->slots[i].segment == segment)
            return &r->slots[i];
    return NULL;
}

static int start_sends(struct relay *r)
{
    int moved = 0;
    for (int i = 0; i < RELAY_MAX_SENDS && r->give != PLAN_END; i++) {
        if (r->sends[i].request.active)
            continue;
        struct slot *s = slot_of(r, r->give);
        int own =
            plan_distance(r->job->plan, plan_flow_of(r->job->plan, r->give), r->net->rank) == 0;
        if (!s && !(r->failed && own && !r->busy))
            break;
        struct message *m = s ? s->message : &r->empty[i];
        if (r->failed) {
            if (s && s->taking)
                break; /* its worker still reads the message */
            *m = (struct message){.segment = r->give, .failed = 1};
        }
        r->sends[i].slot = s;
        if (s) {
            s->to_send = 0;
            s->sending = 1;
        }
        r->give = plan_walk_next(&r->out);
        moved = 1;
        if (net_send(r, m, sizeof *m + m->bytes, TAG_SEGMENT, &r->sends[i].request))
            break;
    }
    return moved;
}

static int finish_sends(struct relay *r)
{
    int moved = 0;
    for (int i = 0; i < RELAY_MAX_SENDS; i++) {
        if (!r->sends[i].request.active || !net_done(r, &r->sends[i].request))
            continue;
        moved = 1;
        if (r->sends[i].slot) {
            r->sends[i].slot->sending = 0;
            relay_slot_settle(r, r->sends[i].slot);
        }
    }
    return moved;
}

/* After a failure nothing is owed to the workers any more. */
static void drop_what_is_left(struct relay *r)
{
    for (uint32_t i = 0; i < r->n_slots; i++) {
        if (!r->slots[i].taking)
            r->slots[i].to_take = 0;
        relay_slot_settle(r, &r->slots[i]);
    }
}

static int segments_done(const struct relay *r)
{
    if (r->want != PLAN_END || r->give != PLAN_END || r->post_head != r->post_tail)
        return 0;
    for (int i = 0; i < RELAY_MAX_SENDS; i++)
        if (r->sends[i].request.active)
            return 0;
    return r->failed ? r->busy == 0 : !r->job->take || r->n_taken == r->job->plan->n_segments;
}

/* Every node sends its right neighbour one word: bad as soon as it knows, good at the end. */
static int exchange_status(struct relay *r)
{
    int moved = 0;
    if (!r->status_sent && (r->failed || segments_done(r))) {
        r->status_out = r->failed != 0;
        moved = r->status_sent = 1;
        net_send(r, &r->status_out, sizeof r->status_out, TAG_STATUS, &r->status_out_request);
    }
    if (!r->status_heard && net_done(r, &r->status_in_request)) {
        moved = r->status_heard = 1;
        if (r->status_in)
            r->failed = 1;
    }
    if (r->status_out_request.active)
        net_done(r, &r->status_out_request);
    return moved;
}

static int all_done(const struct relay *r)
{
    if (!segments_done(r))
        return 0;
    return r->net->size == 1 ||
           (r->status_sent && r->status_heard && !r->status_out_request.active);
}

static void wait_for_threads(struct relay *r, uint64_t ns)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    uint64_t at = (uint64_t)t.tv_nsec + ns;
    t.tv_sec += (time_t)(at / 1000000000u);
    t.tv_nsec = (long)(at % 1000000000u);
    pthread_cond_timedwait(&r->to_main, &r->lock, &t);
}

static void undo_once_quiet(struct relay *r)
{
    drop_what_is_left(r);
    pthread_cond_signal(&r->to_reader);
    if (r->abandoned || r->busy)
        return;
    r->abandoned = 1;
    if (r->job->abandon) {
        pthread_mutex_unlock(&r->lock);
        r->job->abandon(r->job->context);
        pthread_mutex_lock(&r->lock);
    }
}

static void show_progress(struct relay *r)
{
    if (r->job->progress && !r->failed)
        r->job->progress(r->job->context, r->job->take ? r->n_taken : r->n_received);
}

/* Returns 0 when everything has ended in order, or what makes it hopeless to go on. */
static int run_steps(struct relay *r)
{
    const struct relay_job *job = r->job;
    uint64_t moved_at = brg_clock_ns(), interrupted_at = 0, nap_ns = NAP_MIN_NS;
    uint32_t taken = 0;
    for (;;) {
        int moved = 0;
        if (*job->interrupted && !interrupted_at) {
            interrupted_at = brg_clock_ns();
            relay_fail_here(r, -EINTR);
        }
        if (r->net->size > 1) {
            moved |= finish_receives(r);
            moved |= post_receives(r);
            moved |= start_sends(r);
            moved |= finish_sends(r);
            moved |= exchange_status(r);
        }
        if (r->failed)
            undo_once_quiet(r);
        if (r->net_error)
            return r->net_error;
        if (all_done(r)) {
            show_progress(r);
            return 0;
        }
        moved |= taken != r->n_taken;
        taken = r->n_taken;
        if (moved) {
            moved_at = brg_clock_ns();
            nap_ns = NAP_MIN_NS;
            show_progress(r);
            continue;
        }
        if (interrupted_at && brg_clock_ns() - interrupted_at > job->grace_ns)
            return -EINTR;
        if (!r->busy && brg_clock_ns() - moved_at > job->timeout_ns)
            return -ETIMEDOUT;
        wait_for_threads(r, nap_ns);
        nap_ns = nap_ns * 2 > NAP_MAX_NS ? NAP_MAX_NS : nap_ns * 2;
    }
}

static void relay_free(struct relay *r)
{
    for (uint32_t i = 0; r->slots && i < r->n_slots; i++)
        free(r->slots[i].message);
    free(r->slots);
    pthread_cond_destroy(&r->to_main);
    pthread_cond_destroy(&r->to_workers);
    pthread_cond_destroy(&r->to_reader);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

static int relay_create(const struct relay_job *job, struct relay **out)
{
    if (job->n_slots < PLAN_TRANSIT_SLOTS || job->n_slots > RELAY_MAX_SLOTS ||
        job->n_workers > RELAY_MAX_WORKERS)
        return -EINVAL;
    struct relay *r = calloc(1, sizeof *r);
    if (!r)
        return -ENOMEM;
    r->job = job;
    r->net = job->net;
    r->left = (r->net->rank + r->net->size - 1) % r->net->size;
    r->right = (r->net->rank + 1) % r->net->size;
    pthread_mutex_init(&r->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&r->to_main, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_cond_init(&r->to_workers, NULL);
    pthread_cond_init(&r->to_reader, NULL);
    int reads = plan_flow_at(job->plan, r->net->rank) != PLAN_END;
    r->n_slots = job->n_slots + (reads ? RELAY_READ_SLOTS : 0);
    r->slots = calloc(r->n_slots, sizeof *r->slots);
    for (uint32_t i = 0; r->slots && i < r->n_slots; i++) {
        r->slots[i].message = malloc(sizeof(struct message) + job->slot_bytes);
        if (!r->slots[i].message) {
            relay_free(r);
            return -ENOMEM;
        }
    }
    if (!r->slots) {
        relay_free(r);
        return -ENOMEM;
    }
    plan_walk_start(&r->in, job->plan, r->left);
    plan_walk_start(&r->out, job->plan, r->net->rank);
    r->want = plan_walk_next(&r->in);
    r->give = plan_walk_next(&r->out);
    *out = r;
    return 0;
}

enum relay_end relay_run(const struct relay_job *job, int *error)
{
    struct relay *r;
    int rc = relay_create(job, &r);
    if (rc) {
        *error = rc; /* the others wait for messages that cannot be sent without memory */
        return RELAY_STUCK;
    }
    rc = relay_start_threads(r);
    pthread_mutex_lock(&r->lock);
    if (r->net->size > 1)
        net_receive(r, &r->status_in, sizeof r->status_in, TAG_STATUS, &r->status_in_request);
    if (rc)
        relay_fail_here(r, rc);
    rc = run_steps(r);
    relay_stop_threads(r);
    if (rc) {
        if (job->abandon && !r->abandoned)
            job->abandon(job->context);
        *error = r->error && rc != -EINTR ? r->error : rc;
        return RELAY_STUCK; /* r stays: the net may still write to it */
    }
    enum relay_end end = !r->failed ? RELAY_DONE : r->error ? RELAY_FAILED : RELAY_ELSEWHERE;
    *error = r->error;
    relay_free(r);
    return end;
}

int relay_wait(const struct relay_job *job, struct stream_request *request)
{
    uint64_t start = brg_clock_ns(), interrupted_at = 0, nap_ns = NAP_MIN_NS;
    for (;;) {
        int done = 0;
        int rc = job->net->test(job->net, request, &done);
        if (rc || done)
            return rc;
        uint64_t now = brg_clock_ns();
        if (*job->interrupted && !interrupted_at)
            interrupted_at = now;
        if (interrupted_at && now - interrupted_at > job->grace_ns)
            return -EINTR;
        if (now - start > job->timeout_ns)
            return -ETIMEDOUT;
        nap(nap_ns);
        nap_ns = nap_ns * 2 > NAP_MAX_NS ? NAP_MAX_NS : nap_ns * 2;
    }
}
