/* The relay moves every byte to every node and ends in order when something fails, over a net of
 * threads with rendezvous semantics: a message is handed over only when both ends have asked. */
#include "claim.h"
#include "stream/relay.h"
#include "threads_net.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_NODES 8
#define SEGMENT 1000

/* ---- one node ---- */

struct node {
    struct stream_net net;
    struct plan *plan;
    pthread_mutex_t lock;
    int taken[200], n_read, abandoned, callbacks_after_abandon;
    enum relay_end end;
    int error;
    volatile sig_atomic_t interrupted;
    int fail_take_at, fail_read_at, slow;
    uint64_t timeout_ns;
    pthread_t thread;
};

static size_t bytes_of(uint32_t segment)
{
    return SEGMENT - segment % 7;
}

static int node_read(void *context, uint32_t segment, void *buf, size_t *bytes)
{
    struct node *n = context;
    pthread_mutex_lock(&n->lock);
    n->n_read++;
    n->callbacks_after_abandon += n->abandoned;
    int fail = n->fail_read_at && n->n_read >= n->fail_read_at;
    pthread_mutex_unlock(&n->lock);
    if (fail)
        return -EIO;
    *bytes = bytes_of(segment);
    memset(buf, (int)(segment * 31 + 5), *bytes);
    return 0;
}

static int node_take(void *context, uint32_t worker, uint32_t segment, const void *buf,
                     size_t bytes)
{
    struct node *n = context;
    (void)worker;
    if (n->slow)
        usleep(300);
    unsigned char want[SEGMENT];
    memset(want, (int)(segment * 31 + 5), sizeof want);
    CHECK(bytes == bytes_of(segment) && memcmp(buf, want, bytes) == 0, "segment %u is wrong",
          segment);
    pthread_mutex_lock(&n->lock);
    n->taken[segment]++;
    n->callbacks_after_abandon += n->abandoned;
    int fail = n->fail_take_at && segment == (uint32_t)n->fail_take_at;
    pthread_mutex_unlock(&n->lock);
    return fail ? -ENOSPC : 0;
}

static void node_abandon(void *context)
{
    struct node *n = context;
    pthread_mutex_lock(&n->lock);
    n->abandoned++;
    pthread_mutex_unlock(&n->lock);
}

static void *node_run(void *argument)
{
    struct node *n = argument;
    struct relay_job job = {.plan = n->plan,
                            .net = &n->net,
                            .n_slots = PLAN_TRANSIT_SLOTS,
                            .n_workers = 2,
                            .slot_bytes = SEGMENT,
                            .context = n,
                            .read = node_read,
                            .take = node_take,
                            .abandon = node_abandon,
                            .interrupted = &n->interrupted,
                            .timeout_ns = n->timeout_ns,
                            .grace_ns = 200000000};
    n->end = relay_run(&job, &n->error);
    return NULL;
}

static struct node nodes[MAX_NODES];
static struct plan plan;

static void prepare(uint32_t n_nodes, uint32_t n_readers, uint32_t n_segments)
{
    memset(nodes, 0, sizeof nodes);
    plan_spread(&plan, n_nodes, n_readers, n_segments);
    for (uint32_t i = 0; i < n_nodes; i++) {
        pthread_mutex_init(&nodes[i].lock, NULL);
        nodes[i].plan = &plan;
        nodes[i].timeout_ns = 20000000000u;
        nodes[i].net = threads_node(i, n_nodes);
    }
}

static void run(void)
{
    for (uint32_t i = 0; i < plan.n_nodes; i++)
        pthread_create(&nodes[i].thread, NULL, node_run, &nodes[i]);
    for (uint32_t i = 0; i < plan.n_nodes; i++)
        pthread_join(nodes[i].thread, NULL);
}

static void every_node_takes_every_segment_once_and_each_is_read_once(void)
{
    static const uint32_t counts[] = {0, 1, 7, 60};
    for (uint32_t n = 1; n <= MAX_NODES; n++)
        for (uint32_t r = 1; r <= 4 && r <= n; r++)
            for (uint32_t c = 0; c < 4; c++) {
                prepare(n, r, counts[c]);
                nodes[n / 2].slow = 1;
                run();
                int read = 0;
                for (uint32_t i = 0; i < n; i++) {
                    CHECK(nodes[i].end == RELAY_DONE && !nodes[i].abandoned, "node %u: end %d", i,
                          nodes[i].end);
                    read += nodes[i].n_read;
                    for (uint32_t s = 0; s < counts[c]; s++)
                        CHECK(nodes[i].taken[s] == 1, "n=%u r=%u: node %u took %u %d times", n, r,
                              i, s, nodes[i].taken[s]);
                }
                CHECK(read == (int)counts[c], "%d reads of %u segments", read, counts[c]);
            }
}

static void check_failure(uint32_t bad, int error, const char *what)
{
    for (uint32_t i = 0; i < plan.n_nodes; i++) {
        CHECK(nodes[i].end == (i == bad ? RELAY_FAILED : RELAY_ELSEWHERE), "%s: node %u: end %d",
              what, i, nodes[i].end);
        CHECK(nodes[i].abandoned == 1, "%s: node %u undid %d times", what, i, nodes[i].abandoned);
        CHECK(nodes[i].callbacks_after_abandon == 0, "%s: node %u went on", what, i);
    }
    CHECK(nodes[bad].error == error, "%s: error %d", what, nodes[bad].error);
}

/* With 199 segments and the failure at the start, the news arrives before the last segment. */
static void a_failure_on_any_node_ends_all_nodes_with_everything_undone(void)
{
    for (uint32_t n = 2; n <= MAX_NODES; n += 3)
        for (uint32_t bad = 0; bad < n; bad++) {
            prepare(n, 1 + n / 3, 199);
            for (uint32_t i = 0; i < n; i++)
                nodes[i].slow = 1;
            nodes[bad].fail_take_at = 1;
            run();
            check_failure(bad, -ENOSPC, "take");
            if (plan_flow_at(&plan, bad) == PLAN_END)
                continue;
            prepare(n, 1 + n / 3, 199);
            for (uint32_t i = 0; i < n; i++)
                nodes[i].slow = 1;
            nodes[bad].fail_read_at = 2;
            run();
            check_failure(bad, -EIO, "read");
            CHECK(nodes[bad].n_read <= 3, "read on after the failure: %d", nodes[bad].n_read);
        }
}

static void a_signal_on_one_node_ends_all(void)
{
    prepare(5, 2, 100);
    nodes[3].interrupted = 15;
    run();
    check_failure(3, -EINTR, "signal");
}

static void a_silent_neighbour_is_given_up_after_the_time_limit(void)
{
    prepare(3, 1, 20);
    threads_net.deaf = 1; /* receives nothing: node 0 cannot send, node 2 gets nothing */
    for (uint32_t i = 0; i < 3; i++)
        nodes[i].timeout_ns = 300000000;
    run();
    threads_net.deaf = STREAM_ANY;
    for (uint32_t i = 0; i < 3; i++)
        CHECK(nodes[i].end == RELAY_STUCK && nodes[i].error == -ETIMEDOUT &&
                  nodes[i].abandoned == 1,
              "node %u: end %d error %d", i, nodes[i].end, nodes[i].error);
}

int main(void)
{
    every_node_takes_every_segment_once_and_each_is_read_once();
    a_failure_on_any_node_ends_all_nodes_with_everything_undone();
    a_signal_on_one_node_ends_all();
    a_silent_neighbour_is_given_up_after_the_time_limit();
    printf(failures ? "%d failures\n" : "ok\n", failures);
    return failures != 0;
}
