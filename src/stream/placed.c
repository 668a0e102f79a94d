/* See placed.h. */
#include "stream/placed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct placed {
    struct stream_net net; /* first: what callers hold */
    struct stream_net *inner;
    uint32_t order[];
};

static struct placed *of(struct stream_net *net)
{
    return (struct placed *)net;
}

static int placed_send(struct stream_net *net, const void *buf, size_t bytes, uint32_t to, int tag,
                       struct stream_request *request)
{
    struct placed *p = of(net);
    return p->inner->send(p->inner, buf, bytes, p->order[to], tag, request);
}

static int placed_receive(struct stream_net *net, void *buf, size_t bytes, uint32_t from, int tag,
                          struct stream_request *request)
{
    struct placed *p = of(net);
    return p->inner->receive(p->inner, buf, bytes, p->order[from], tag, request);
}

static int placed_test(struct stream_net *net, struct stream_request *request, int *done)
{
    return of(net)->inner->test(of(net)->inner, request, done);
}

static int placed_broadcast(struct stream_net *net, void *buf, size_t bytes, uint32_t root,
                            struct stream_request *request)
{
    struct placed *p = of(net);
    return p->inner->broadcast(p->inner, buf, bytes, p->order[root], request);
}

static int placed_minimum(struct stream_net *net, const int64_t *mine, int64_t *least, int n,
                          struct stream_request *request)
{
    return of(net)->inner->minimum(of(net)->inner, mine, least, n, request);
}

static int placed_gather(struct stream_net *net, const void *mine, size_t bytes, void *all,
                         struct stream_request *request)
{
    return of(net)->inner->gather(of(net)->inner, mine, bytes, all, request);
}

static void placed_abort(struct stream_net *net, int code)
{
    of(net)->inner->abort(of(net)->inner, code);
}

static void placed_finish(struct stream_net *net)
{
    of(net)->inner->finish(of(net)->inner);
}

int placed_create(struct stream_net *inner, const uint32_t *order, struct stream_net **out)
{
    uint32_t n = inner->size, rank = n;
    unsigned char *seen = calloc(n, 1);
    struct placed *p = malloc(sizeof *p + n * sizeof *p->order);
    int sound = order[0] == 0;
    for (uint32_t i = 0; seen && i < n && sound; i++) {
        sound = order[i] < n && !seen[order[i]];
        if (sound)
            seen[order[i]] = 1;
        if (order[i] == inner->rank)
            rank = i;
    }
    if (!seen || !p || !sound) {
        int rc = seen && p ? -EINVAL : -ENOMEM;
        free(seen);
        free(p);
        return rc;
    }
    free(seen);
    *p = (struct placed){.net = {.rank = rank,
                                 .size = n,
                                 .send = placed_send,
                                 .receive = placed_receive,
                                 .test = placed_test,
                                 .broadcast = placed_broadcast,
                                 .minimum = placed_minimum,
                                 .gather = placed_gather,
                                 .abort = placed_abort,
                                 .finish = placed_finish},
                         .inner = inner};
    memcpy(p->order, order, n * sizeof *order);
    *out = &p->net;
    return 0;
}

void placed_destroy(struct stream_net *net)
{
    free(of(net));
}
