/* See group.h. */
#include "stream/group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MOST_MESSAGES 32 /* of one step, each way: a root has a child for each bit of a rank */

enum kind {
    LEAST,
    SHARE,
    ALL,
    ROOT
};

/* The collective call under way. A step is begun, and when all its messages are done, taken. */
struct call {
    struct stream_request *request; /* the caller's; NULL: none is under way */
    enum kind kind;
    int step, ended;
    struct stream_request out[MOST_MESSAGES], in[2];
    uint32_t n_out, n_in;
    int64_t *least;
    int n;
    int has; /* SHARE: the bytes of the root, which lie behind the values */
    char *bytes;
    size_t n_bytes; /* of one rank, or of the root */
    uint32_t root;
};

struct group {
    struct stream_net net;
    struct stream_net *of;
    const uint32_t *ranks;
    int tag;
    struct call call;
    int most_values;
    int64_t heard[]; /* of another rank */
};

static struct group *group_of(struct stream_net *net)
{
    return (struct group *)net;
}

/* ---- between two ---- */

static int group_send(struct stream_net *net, const void *buf, size_t bytes, uint32_t to, int tag,
                      struct stream_request *request)
{
    struct group *g = group_of(net);
    return g->of->send(g->of, buf, bytes, g->ranks[to], tag, request);
}

static int group_send_matched(struct stream_net *net, const void *buf, size_t bytes, uint32_t to,
                              int tag, struct stream_request *request)
{
    struct group *g = group_of(net);
    return g->of->send_matched(g->of, buf, bytes, g->ranks[to], tag, request);
}

static int group_receive(struct stream_net *net, void *buf, size_t bytes, uint32_t from, int tag,
                         struct stream_request *request)
{
    struct group *g = group_of(net);
    return g->of->receive(g->of, buf, bytes, from == STREAM_ANY ? from : g->ranks[from], tag,
                          request);
}

/* ---- messages of a step ---- */

static uint32_t ahead(const struct group *g, uint32_t by)
{
    return (uint32_t)(((uint64_t)g->net.rank + by) % g->net.size);
}

static uint32_t behind(const struct group *g, uint32_t by)
{
    return ahead(g, g->net.size - by);
}

static int give(struct group *g, const void *bytes, size_t n, uint32_t to)
{
    struct stream_request *request = &g->call.out[g->call.n_out++];
    return group_send(&g->net, bytes, n, to, g->tag, request);
}

static int take(struct group *g, void *bytes, size_t n, uint32_t from)
{
    struct stream_request *request = &g->call.in[g->call.n_in++];
    return group_receive(&g->net, bytes, n, from, g->tag, request);
}

/* Blocks of the `n` ranks that end with `last`, which are one piece or, around the end, two: the
 * same ones for who sends them and who receives them. */
static int pass_blocks(struct group *g, uint32_t last, uint32_t n, uint32_t other, int out)
{
    size_t bytes = g->call.n_bytes;
    uint32_t tail = last + 1 < n ? n - last - 1 : 0; /* of these, at the end of `all` */
    char *parts[] = {g->call.bytes + (g->net.size - tail) * bytes,
                     g->call.bytes + (last + 1 - (n - tail)) * bytes};
    size_t sizes[] = {tail * bytes, (n - tail) * bytes};
    int rc = 0;
    for (int i = 0; i < 2 && !rc; i++)
        if (sizes[i])
            rc = out ? give(g, parts[i], sizes[i], other) : take(g, parts[i], sizes[i], other);
    return rc;
}

/* ---- steps, by number: 1 begun, 0 there are no more, or -errno ---- */

/* How far the messages of a step go, in ranks. */
static uint32_t reach_of(const struct call *c)
{
    return UINT32_C(1) << c->step;
}

static int is_last(const struct group *g)
{
    return g->call.step == 31 || reach_of(&g->call) >= g->net.size;
}

static int begin_least(struct group *g)
{
    struct call *c = &g->call;
    if (is_last(g))
        return 0;
    size_t bytes = (size_t)c->n * sizeof *c->least;
    int rc = take(g, g->heard, bytes, behind(g, reach_of(c)));
    rc = rc ? rc : give(g, c->least, bytes, ahead(g, reach_of(c)));
    return rc ? rc : 1;
}

/* As begin_least; who has the bytes of the root sends them along: the last value is 0. */
static int begin_share(struct group *g)
{
    struct call *c = &g->call;
    size_t values = (size_t)c->n * sizeof *c->least;
    if (is_last(g))
        return 0;
    c->least[c->n - 1] = !c->has;
    int rc = take(g, g->heard, values + c->n_bytes, behind(g, reach_of(c)));
    rc = rc ? rc : give(g, c->least, values + (c->has ? c->n_bytes : 0), ahead(g, reach_of(c)));
    return rc ? rc : 1;
}

static void take_least(struct group *g)
{
    struct call *c = &g->call;
    if (c->kind == SHARE && !c->has && !g->heard[c->n - 1]) {
        memcpy(c->least + c->n, g->heard + c->n, c->n_bytes);
        c->has = 1;
    }
    for (int i = 0; i < c->n; i++)
        if (g->heard[i] < c->least[i])
            c->least[i] = g->heard[i];
}

/* This rank has the blocks of as many ranks as messages go far, the last of them its own. */
static int begin_all(struct group *g)
{
    struct call *c = &g->call;
    if (is_last(g))
        return 0;
    uint32_t has = reach_of(c), lacks = g->net.size - has, n = has < lacks ? has : lacks;
    int rc = pass_blocks(g, behind(g, has), n, behind(g, has), 0);
    rc = rc ? rc : pass_blocks(g, g->net.rank, n, ahead(g, has), 1);
    return rc ? rc : 1;
}

/* From the parent, then to the children: ranks are numbered from the root, and a parent lacks the
 * lowest bit of its child. */
static int begin_root(struct group *g)
{
    struct call *c = &g->call;
    uint32_t place = (g->net.rank + g->net.size - c->root) % g->net.size, bit = place & -place;
    int rc = 0;
    if (c->step == 0 && place)
        rc = take(g, c->bytes, c->n_bytes, behind(g, bit));
    if (c->step == 1)
        for (uint32_t to = UINT32_C(1) << (MOST_MESSAGES - 1); to && !rc; to >>= 1)
            if ((!place || to < bit) && to < g->net.size - place)
                rc = give(g, c->bytes, c->n_bytes, ahead(g, to));
    return rc ? rc : c->step < 2;
}

static int begin_step(struct group *g)
{
    struct call *c = &g->call;
    c->n_out = c->n_in = 0;
    int rc = c->kind == LEAST   ? begin_least(g)
             : c->kind == SHARE ? begin_share(g)
             : c->kind == ALL   ? begin_all(g)
                                : begin_root(g);
    c->ended = rc == 0;
    return rc < 0 ? rc : 0;
}

/* ---- a call ---- */

static int begin_call(struct group *g, struct call call)
{
    if (g->call.request)
        return -EBUSY;
    g->call = call;
    call.request->active = 1;
    return begin_step(g);
}

/* Whether `n` requests are done. */
static int all_done(struct group *g, struct stream_request *requests, uint32_t n, int *done)
{
    for (uint32_t i = 0; i < n; i++) {
        int one = 1, rc = requests[i].active ? g->of->test(g->of, &requests[i], &one) : 0;
        if (rc)
            return rc;
        *done = *done && one;
    }
    return 0;
}

static int advance(struct group *g, int *done)
{
    struct call *c = &g->call;
    while (!c->ended) {
        *done = 1;
        int rc = all_done(g, c->in, c->n_in, done);
        rc = rc ? rc : all_done(g, c->out, c->n_out, done);
        if (rc || !*done)
            return rc;
        if (c->kind == LEAST || c->kind == SHARE)
            take_least(g);
        c->step++;
        if ((rc = begin_step(g)))
            return rc;
    }
    *done = 1;
    c->request->active = 0;
    c->request = NULL;
    return 0;
}

static int group_test(struct stream_net *net, struct stream_request *request, int *done)
{
    struct group *g = group_of(net);
    *done = 0;
    return g->call.request == request ? advance(g, done) : g->of->test(g->of, request, done);
}

static int group_minimum(struct stream_net *net, const int64_t *mine, int64_t *least, int n,
                         struct stream_request *request)
{
    struct group *g = group_of(net);
    if (n > g->most_values)
        return -EINVAL;
    memcpy(least, mine, (size_t)n * sizeof *least);
    return begin_call(g, (struct call){.request = request, .kind = LEAST, .least = least, .n = n});
}

static int group_broadcast(struct stream_net *net, void *buf, size_t bytes, uint32_t root,
                           struct stream_request *request)
{
    return begin_call(
        group_of(net),
        (struct call){
            .request = request, .kind = ROOT, .bytes = buf, .n_bytes = bytes, .root = root});
}

int group_gather_all(struct stream_net *group, void *all, size_t bytes,
                     struct stream_request *request)
{
    return begin_call(
        group_of(group),
        (struct call){.request = request, .kind = ALL, .bytes = all, .n_bytes = bytes});
}

int group_share(struct stream_net *group, int64_t *least, int n, size_t bytes, uint32_t root,
                struct stream_request *request)
{
    struct group *g = group_of(group);
    if ((size_t)(n + 1) * sizeof *least + bytes > (size_t)g->most_values * sizeof *least)
        return -EINVAL;
    return begin_call(g, (struct call){.request = request,
                                       .kind = SHARE,
                                       .least = least,
                                       .n = n + 1,
                                       .has = group->rank == root,
                                       .n_bytes = bytes});
}

struct stream_net *group_new(int most_values)
{
    struct group *g = calloc(1, sizeof *g + (size_t)most_values * sizeof *g->heard);
    if (!g)
        return NULL;
    g->most_values = most_values;
    return &g->net;
}

void group_set(struct stream_net *group, struct stream_net *of, const uint32_t *ranks,
               uint32_t size, uint32_t rank, int tag)
{
    struct group *g = group_of(group);
    g->net = (struct stream_net){.rank = rank,
                                 .size = size,
                                 .send = group_send,
                                 .send_matched = group_send_matched,
                                 .receive = group_receive,
                                 .test = group_test,
                                 .broadcast = group_broadcast,
                                 .minimum = group_minimum};
    g->of = of;
    g->ranks = ranks;
    g->tag = tag;
}

void group_free(struct stream_net *group)
{
    if (group)
        free(group_of(group));
}
