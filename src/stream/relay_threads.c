/* The relay's threads: one that reads, and the workers. The lock is held except while a callback
 * runs. */
#include <errno.h>
#include <stdlib.h>

#include "stream/relay_parts.h"

struct worker {
    struct relay *relay;
    uint32_t number;
};

void relay_slot_settle(struct relay *r, struct slot *s)
{
    if (s->state == SLOT_HELD && !s->to_send && !s->to_take && !s->sending && !s->taking) {
        s->state = SLOT_FREE;
        pthread_cond_signal(&r->to_reader);
    }
}

void relay_fail_here(struct relay *r, int error)
{
    r->failed = 1;
    if (!r->error)
        r->error = error;
}

static struct slot *slot_to_take(struct relay *r)
{
    struct slot *oldest = NULL;
    for (uint32_t i = 0; i < r->n_slots; i++) {
        struct slot *s = &r->slots[i];
        if (s->state == SLOT_HELD && s->to_take && !s->taking &&
            (!oldest || s->segment < oldest->segment))
            oldest = s;
    }
    return oldest;
}

static void *work(void *argument)
{
    struct worker *me = argument;
    struct relay *r = me->relay;
    pthread_mutex_lock(&r->lock);
    while (!r->stop) {
        struct slot *s = r->failed ? NULL : slot_to_take(r);
        if (!s) {
            pthread_cond_wait(&r->to_workers, &r->lock);
            continue;
        }
        s->taking = 1;
        r->busy++;
        pthread_mutex_unlock(&r->lock);
        int rc = r->job->take(r->job->context, me->number, s->segment, s->message->body,
                              s->message->bytes);
        pthread_mutex_lock(&r->lock);
        r->busy--;
        s->taking = 0;
        s->to_take = 0;
        r->n_taken++;
        if (rc)
            relay_fail_here(r, rc);
        relay_slot_settle(r, s);
        pthread_cond_signal(&r->to_main);
    }
    pthread_mutex_unlock(&r->lock);
    free(me);
    return NULL;
}

static void *read_own(void *argument)
{
    struct relay *r = argument;
    const struct plan *plan = r->job->plan;
    const struct plan_flow *flow = &plan->flows[plan_flow_at(plan, r->net->rank)];
    pthread_mutex_lock(&r->lock);
    for (uint32_t k = 0; k < flow->count; k++) {
        struct slot *s = NULL;
        while (!r->stop && !r->failed && !s) {
            for (uint32_t i = r->job->n_slots; i < r->n_slots && !s; i++)
                if (r->slots[i].state == SLOT_FREE)
                    s = &r->slots[i];
            if (!s)
                pthread_cond_wait(&r->to_reader, &r->lock);
        }
        if (r->stop || r->failed)
            break;
        s->state = SLOT_READING;
        s->segment = plan_segment(flow, k);
        r->busy++;
        pthread_mutex_unlock(&r->lock);
        size_t bytes = 0;
        int rc = r->job->read(r->job->context, s->segment, s->message->body, &bytes);
        pthread_mutex_lock(&r->lock);
        r->busy--;
        if (rc)
            relay_fail_here(r, rc);
        s->message->segment = s->segment;
        s->message->failed = 0;
        s->message->bytes = rc ? 0 : bytes;
        s->to_send = flow->hops > 0;
        s->to_take = r->job->take != NULL;
        s->state = SLOT_HELD;
        relay_slot_settle(r, s);
        pthread_cond_signal(&r->to_workers);
        pthread_cond_signal(&r->to_main);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

int relay_start_threads(struct relay *r)
{
    const struct plan *plan = r->job->plan;
    uint32_t f = plan_flow_at(plan, r->net->rank);
    int rc = 0;
    if (f != PLAN_END && plan->flows[f].count > 0) {
        rc = -pthread_create(&r->reader, NULL, read_own, r);
        r->reader_running = rc == 0;
    }
    for (uint32_t i = 0; !rc && r->job->take && i < r->job->n_workers; i++) {
        struct worker *w = malloc(sizeof *w);
        if (!w)
            return -ENOMEM;
        *w = (struct worker){.relay = r, .number = i};
        rc = -pthread_create(&r->workers[i], NULL, work, w);
        if (rc)
            free(w);
        else
            r->n_workers_running++;
    }
    return rc;
}

void relay_stop_threads(struct relay *r)
{
    r->stop = 1;
    pthread_cond_broadcast(&r->to_workers);
    pthread_cond_broadcast(&r->to_reader);
    pthread_mutex_unlock(&r->lock);
    if (r->reader_running)
        pthread_join(r->reader, NULL);
    for (uint32_t i = 0; i < r->n_workers_running; i++)
        pthread_join(r->workers[i], NULL);
}
