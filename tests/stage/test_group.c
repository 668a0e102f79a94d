/* Groups of ranks agree, gather and broadcast by messages between two, as often and in as many
 * steps as promised: over a net of threads with rendezvous, two groups side by side on one tag,
 * their ranks mixed. What every call must give follows from its number alone. */
#include "claim.h"
#include "stream/group.h"
#include "threads_net.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define MOST 17
#define VALUES 5
#define CALLS 60
#define TAG 7

static struct {
    uint32_t size;            /* of each of two groups */
    uint32_t order[2 * MOST]; /* ranks of the net: those of group 0, then of group 1 */
    unsigned seed;
    _Atomic unsigned messages; /* handed over */
    _Atomic size_t bytes;      /* in them */
} job;

struct node {
    struct stream_net net;
    uint32_t group, rank;
    pthread_t thread;
};

static void count(const struct threads_post *send)
{
    job.messages++;
    job.bytes += send->bytes;
}

static unsigned noise(unsigned a, unsigned b)
{
    unsigned x = job.seed ^ (a * 2654435761u) ^ (b * 40503u);
    x ^= x >> 15;
    x *= 2246822519u;
    return x ^ x >> 13;
}

static int64_t value_of(uint32_t group, uint32_t rank, unsigned call, unsigned i)
{
    return (int64_t)(noise(call * 64 + i, rank * 2 + group) % 1000) - 500;
}

static void wait_for(struct stream_net *net, struct stream_request *request, int rc)
{
    for (int done = 0; !rc && !done; sched_yield())
        rc = net->test(net, request, &done);
    CHECK(rc == 0 && !request->active, "rc %d, active %d", rc, request->active);
}

static void agree(struct node *n, struct stream_net *g, unsigned call)
{
    int64_t mine[VALUES], least[VALUES];
    struct stream_request request = {.active = 0}, second = {.active = 0};
    int count_of = 1 + (int)(call % VALUES);
    for (int i = 0; i < count_of; i++)
        mine[i] = value_of(n->group, n->rank, call, (unsigned)i);
    int rc = g->minimum(g, mine, least, count_of, &request);
    CHECK(g->minimum(g, mine, mine, 1, &second) == -EBUSY, "two at a time");
    wait_for(g, &request, rc);
    for (int i = 0; i < count_of; i++) {
        int64_t want = INT64_MAX;
        for (uint32_t r = 0; r < job.size; r++) {
            int64_t its = value_of(n->group, r, call, (unsigned)i);
            want = its < want ? its : want;
        }
        CHECK(least[i] == want, "%u ranks, call %u, value %d: %lld, not %lld", job.size, call, i,
              (long long)least[i], (long long)want);
    }
}

static unsigned char byte_of(uint32_t group, uint32_t rank, unsigned call, size_t i)
{
    return (unsigned char)(noise(call, rank * 2 + group) + i);
}

static void gather(struct node *n, struct stream_net *g, unsigned call)
{
    size_t bytes = call % 7 * 5; /* none, too */
    unsigned char all[MOST * 30 + 1];
    struct stream_request request = {.active = 0};
    memset(all, 0, sizeof all);
    for (size_t i = 0; i < bytes; i++)
        all[n->rank * bytes + i] = byte_of(n->group, n->rank, call, i);
    wait_for(g, &request, group_gather_all(g, all, bytes, &request));
    for (uint32_t r = 0; r < job.size; r++)
        for (size_t i = 0; i < bytes; i++)
            CHECK(all[r * bytes + i] == byte_of(n->group, r, call, i),
                  "%u ranks, call %u: byte %zu of %u at %u", job.size, call, i, r, n->rank);
    CHECK(all[job.size * bytes] == 0, "written past the end");
}

static void spread(struct node *n, struct stream_net *g, unsigned call)
{
    size_t bytes = call % 5 * 9;
    uint32_t root = noise(call, 99) % job.size;
    unsigned char buf[40] = {0};
    struct stream_request request = {.active = 0};
    for (size_t i = 0; n->rank == root && i < bytes; i++)
        buf[i] = byte_of(n->group, root, call, i);
    wait_for(g, &request, g->broadcast(g, buf, bytes, root, &request));
    for (size_t i = 0; i < bytes; i++)
        CHECK(buf[i] == byte_of(n->group, root, call, i), "%u ranks, call %u, root %u at %u",
              job.size, call, root, n->rank);
}

/* agree and spread in one. */
static void share(struct node *n, struct stream_net *g, unsigned call)
{
    int64_t words[VALUES];
    unsigned char *bytes = (unsigned char *)(words + 3);
    size_t n_bytes = call % (8 * (VALUES - 3) + 1); /* none, too */
    uint32_t root = noise(call, 99) % job.size;
    struct stream_request request = {.active = 0};
    for (int i = 0; i < 2; i++)
        words[i] = value_of(n->group, n->rank, call, (unsigned)i);
    for (size_t i = 0; i < n_bytes; i++)
        bytes[i] = n->rank == root ? byte_of(n->group, root, call, i) : 0xee;
    wait_for(g, &request, group_share(g, words, 2, n_bytes, root, &request));
    for (int i = 0; i < 2; i++)
        for (uint32_t r = 0; r < job.size; r++)
            CHECK(words[i] <= value_of(n->group, r, call, (unsigned)i), "call %u: not the least",
                  call);
    for (size_t i = 0; i < n_bytes; i++)
        CHECK(bytes[i] == byte_of(n->group, root, call, i), "%u ranks, call %u, root %u at %u",
              job.size, call, root, n->rank);
}

/* A message to the rank after, under a tag of its own, while a call goes on. */
static void beside(struct node *n, struct stream_net *g, unsigned call)
{
    uint32_t after = (n->rank + 1) % job.size, before = (n->rank + job.size - 1) % job.size;
    uint32_t mine = n->rank * 1000 + call, its = 0;
    struct stream_request out = {.active = 0}, in = {.active = 0};
    int rc = g->receive(g, &its, sizeof its, before, TAG + 1, &in);
    rc = rc ? rc : g->send(g, &mine, sizeof mine, after, TAG + 1, &out);
    agree(n, g, call);
    wait_for(g, &in, rc);
    wait_for(g, &out, rc);
    CHECK(its == before * 1000 + call, "%u from %u", its, before);
}

static void *run(void *argument)
{
    struct node *n = argument;
    struct stream_net *g = group_new(VALUES);
    group_set(g, &n->net, job.order + n->group * job.size, job.size, n->rank, TAG);
    CHECK(g->minimum(g, NULL, NULL, VALUES + 1, NULL) == -EINVAL, "more values than there is room");
    CHECK(group_share(g, NULL, 2, 8 * (VALUES - 3) + 1, 0, NULL) == -EINVAL, "more bytes");
    for (unsigned call = 0; call < CALLS; call++) {
        void (*calls[])(struct node *, struct stream_net *, unsigned) = {agree, gather, spread,
                                                                         share, beside};
        calls[noise(call, 77) % 5](n, g, call);
    }
    group_free(g);
    return NULL;
}

static void mix_ranks(void)
{
    for (uint32_t i = 0; i < 2 * job.size; i++)
        job.order[i] = i;
    for (uint32_t i = 2 * job.size; i-- > 1;) {
        uint32_t j = noise(i, 55) % (i + 1), was = job.order[i];
        job.order[i] = job.order[j];
        job.order[j] = was;
    }
}

static void start_all(struct node *nodes, void *(*body)(void *))
{
    mix_ranks();
    for (uint32_t i = 0; i < 2 * job.size; i++)
        nodes[job.order[i]] = (struct node){.group = i / job.size, .rank = i % job.size};
    for (uint32_t i = 0; i < 2 * job.size; i++)
        nodes[i].net = threads_node(i, 2 * job.size);
    for (uint32_t i = 0; i < 2 * job.size; i++)
        pthread_create(&nodes[i].thread, NULL, body, &nodes[i]);
    for (uint32_t i = 0; i < 2 * job.size; i++)
        pthread_join(nodes[i].thread, NULL);
}

/* One of each, so that their messages can be counted. */
static void *run_once(void *argument)
{
    struct node *n = argument;
    struct stream_net *g = group_new(VALUES);
    group_set(g, &n->net, job.order + n->group * job.size, job.size, n->rank, TAG);
    agree(n, g, 0);
    spread(n, g, 1);
    gather(n, g, 2);
    share(n, g, 1); /* one byte */
    group_free(g);
    return NULL;
}

/* Agreeing, with something to share or not: one message of each rank a step; the byte that is
 * shared comes with those of ranks that have it; broadcasting: one to each rank but the root;
 * gathering: one or two of each rank a step. What a rank has, it is not sent again. */
static void test_messages(struct node *nodes)
{
    unsigned steps = 0, others = job.size - 1;
    while (1u << steps < job.size)
        steps++;
    job.messages = 0;
    job.bytes = 0;
    start_all(nodes, run_once);
    unsigned least = 2 * (3 * job.size * steps + others), most = least + 2 * job.size * steps;
    size_t bytes = 2 * (8 * job.size * steps + 9 * others + 10 * job.size * others);
    bytes += 2 * (24 * job.size * steps);
    for (uint32_t step = 0; step < steps; step++)
        bytes += 2 * (1u << step);
    CHECK(job.messages >= least && job.messages <= most, "%u ranks: %u messages, not %u to %u",
          job.size, job.messages, least, most);
    CHECK(job.bytes == bytes, "%u ranks: %zu bytes, not %zu", job.size, job.bytes, bytes);
}

int main(void)
{
    static struct node nodes[2 * MOST];
    threads_net.watch = count;
    for (job.size = 1; job.size <= MOST; job.size++) {
        job.seed = 1000 + job.size;
        threads_net.late = job.size % 3 ? 0 : 3;
        test_messages(nodes);
        start_all(nodes, run);
    }
    return failures != 0;
}
