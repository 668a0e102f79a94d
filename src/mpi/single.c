/* One process: collective calls are done at once, messages have nowhere to go. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/mpi.h"

static int single_send(struct stream_net *net, const void *buf, size_t bytes, uint32_t to, int tag,
                       struct stream_request *request)
{
    (void)net, (void)buf, (void)bytes, (void)to, (void)tag, (void)request;
    return -EDESTADDRREQ;
}

static int single_receive(struct stream_net *net, void *buf, size_t bytes, uint32_t from, int tag,
                          struct stream_request *request)
{
    (void)net, (void)buf, (void)bytes, (void)from, (void)tag, (void)request;
    return -EDESTADDRREQ;
}

static int single_test(struct stream_net *net, struct stream_request *request, int *done)
{
    (void)net, (void)request;
    *done = 1;
    return 0;
}

static int single_broadcast(struct stream_net *net, void *buf, size_t bytes, uint32_t root,
                            struct stream_request *request)
{
    (void)net, (void)buf, (void)bytes, (void)root, (void)request;
    return 0;
}

static int single_minimum(struct stream_net *net, const int64_t *mine, int64_t *least, int n,
                          struct stream_request *request)
{
    (void)net, (void)request;
    memcpy(least, mine, (size_t)n * sizeof *mine);
    return 0;
}

static int single_gather(struct stream_net *net, const void *mine, size_t bytes, void *all,
                         struct stream_request *request)
{
    (void)net, (void)request;
    memcpy(all, mine, bytes);
    return 0;
}

static void single_abort(struct stream_net *net, int code)
{
    (void)net;
    _Exit(code);
}

static void single_finish(struct stream_net *net)
{
    (void)net;
}

struct stream_net *net_single(void)
{
    static struct stream_net self = {.rank = 0,
                                     .size = 1,
                                     .send = single_send,
                                     .send_matched = single_send,
                                     .receive = single_receive,
                                     .test = single_test,
                                     .broadcast = single_broadcast,
                                     .minimum = single_minimum,
                                     .gather = single_gather,
                                     .abort = single_abort,
                                     .finish = single_finish};
    return &self;
}
