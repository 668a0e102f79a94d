/* A net of threads for tests, with rendezvous: a message is handed over only when both ends have
 * asked. It can be told to be late with its news. */
#ifndef BRG_TESTS_THREADS_NET_H
#define BRG_TESTS_THREADS_NET_H

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "claim.h"
#include "stream/net.h"

struct threads_post {
    struct threads_post *next;
    const void *from_buf;
    void *to_buf;
    size_t bytes;
    uint32_t from, to;
    int tag, done;
};

static struct {
    pthread_mutex_t lock;
    struct threads_post *sends, *receives; /* not matched yet, oldest first */
    uint32_t deaf; /* this node's receives are never met; STREAM_ANY: all are */
    unsigned late; /* every so many-th question after what is done says no; 0: none */
    unsigned asked;
    /* Sees every message when it is handed over, with the lock held; may be NULL. */
    void (*watch)(const struct threads_post *send);
} threads_net = {.lock = PTHREAD_MUTEX_INITIALIZER, .deaf = STREAM_ANY};

static int threads_fits(const struct threads_post *send, const struct threads_post *receive)
{
    return send->from == receive->from && send->to == receive->to && send->tag == receive->tag &&
           receive->to != threads_net.deaf;
}

/* With the lock held: `post` meets the oldest of `others` that fits, or joins `own`. */
static void threads_meet(struct threads_post *post, int is_send)
{
    struct threads_post **at = is_send ? &threads_net.receives : &threads_net.sends;
    for (; *at; at = &(*at)->next)
        if (is_send ? threads_fits(post, *at) : threads_fits(*at, post))
            break;
    if (!*at) {
        for (at = is_send ? &threads_net.sends : &threads_net.receives; *at; at = &(*at)->next)
            continue;
        *at = post;
        return;
    }
    struct threads_post *other = *at, *send = is_send ? post : other,
                        *receive = is_send ? other : post;
    *at = other->next;
    CHECK(send->bytes <= receive->bytes, "message of %zu bytes into %zu", send->bytes,
          receive->bytes);
    memcpy(receive->to_buf, send->from_buf,
           send->bytes < receive->bytes ? send->bytes : receive->bytes);
    if (threads_net.watch)
        threads_net.watch(send);
    send->done = receive->done = 1;
}

static int threads_begin(struct threads_post post, int is_send, struct stream_request *request)
{
    struct threads_post *p = malloc(sizeof *p);
    *p = post;
    request->handle.pointer = p;
    request->active = 1;
    pthread_mutex_lock(&threads_net.lock);
    threads_meet(p, is_send);
    pthread_mutex_unlock(&threads_net.lock);
    return 0;
}

static int threads_send(struct stream_net *net, const void *buf, size_t bytes, uint32_t to, int tag,
                        struct stream_request *request)
{
    return threads_begin(
        (struct threads_post){
            .from_buf = buf, .bytes = bytes, .from = net->rank, .to = to, .tag = tag},
        1, request);
}

static int threads_receive(struct stream_net *net, void *buf, size_t bytes, uint32_t from, int tag,
                           struct stream_request *request)
{
    return threads_begin(
        (struct threads_post){
            .to_buf = buf, .bytes = bytes, .from = from, .to = net->rank, .tag = tag},
        0, request);
}

static int threads_test(struct stream_net *net, struct stream_request *request, int *done)
{
    struct threads_post *post = request->handle.pointer;
    (void)net;
    *done = 1;
    if (!request->active)
        return 0;
    pthread_mutex_lock(&threads_net.lock);
    *done = post->done && !(threads_net.late && ++threads_net.asked % threads_net.late == 0);
    pthread_mutex_unlock(&threads_net.lock);
    if (*done) {
        request->active = 0;
        free(post);
    }
    return 0;
}

/* Node `rank` of `size`; forgets, for node 0, all that was. */
static struct stream_net threads_node(uint32_t rank, uint32_t size)
{
    if (rank == 0)
        threads_net.sends = threads_net.receives = NULL;
    return (struct stream_net){.rank = rank,
                               .size = size,
                               .send = threads_send,
                               .send_matched = threads_send,
                               .receive = threads_receive,
                               .test = threads_test};
}

#endif
