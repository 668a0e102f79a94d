/* Every window arrives whole where it belongs, by either way and in either direction, with two or
 * three buckets a node; links carry what they should; and failures end it everywhere. */
#include "claim.h"
#include "move/handoff.h"
#include "move/handoff_message.h"
#include "threads_net.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#ifdef FEWER_ROUNDS
#define ROUNDS 60u
#else
#define ROUNDS 240u
#endif
#define BYTES 2048u
#define PIECE 32u /* the unit that nodes hold; BYTES / PIECE of them in a window */
#define PIECES (BYTES / PIECE)
#define MAX_WINDOWS 40u
#define MAX_NODES 9u
#define MAX_BUCKETS 3u
#define MAX_SPARES 3u

/* What is to be moved: the same for all nodes. */
static struct {
    uint32_t n_nodes, n_windows, n_buckets, n_spares;
    int scatter, brigade, owned, one_home;
    uint32_t home[MAX_WINDOWS];
    uint32_t mine[MAX_WINDOWS][MAX_NODES][PIECES]; /* whether a node has a piece; or wants it */
    int concerned[MAX_WINDOWS][MAX_NODES];
    int overlapping;
} job;
static _Atomic int owner_died;

struct slot {
    struct bucket bucket, ranks; /* the leader's view, and another's */
    uint32_t task;
    int used, polls, put;
    unsigned free_after;
};

struct node {
    struct stream_net net;
    struct handoff handoff;
    struct bucket spares[MAX_SPARES];
    struct slot slots[MAX_BUCKETS];
    uint32_t n_tasks, windows[MAX_WINDOWS], arrived, handed;
    unsigned seed, rests;
    uint32_t fail_at; /* asks of `failed` until there is one; 0: never */
    int code, rc;
    struct brg_error err;
    pthread_t thread;
    char *memory;
};
static struct node nodes[MAX_NODES];

static unsigned char byte_of(uint32_t window, uint32_t node, uint32_t at)
{
    return (unsigned char)(window * 7 + node * 59 + at * 3 + at / 256);
}

/* ---- what a node does ---- */

static struct slot *slot_of(struct node *n, uint32_t t)
{
    for (uint32_t i = 0; i < job.n_buckets; i++)
        if (n->slots[i].used && n->slots[i].task == t)
            return &n->slots[i];
    CHECK(0, "task %u has no bucket", t);
    abort();
}

static void node_task(void *context, uint32_t t, struct handoff_task *task)
{
    struct node *n = context;
    *task = (struct handoff_task){.window = n->windows[t], .home = job.home[n->windows[t]]};
}

static int node_concerns(void *context, uint32_t t, uint32_t node)
{
    struct node *n = context;
    return job.concerned[n->windows[t]][node];
}

static struct bucket *node_bucket(void *context, uint32_t t)
{
    struct node *n = context;
    struct slot *s = &n->slots[t % job.n_buckets];
    if (s->used || (s->free_after && s->free_after-- > 1))
        return NULL;
    *s = (struct slot){.bucket = s->bucket,
                       .ranks = s->ranks,
                       .used = 1,
                       .task = t,
                       .polls = rand_r(&n->seed) % 4};
    bucket_clear(&s->bucket, (uint64_t)n->windows[t] * BYTES);
    s->ranks.start = s->bucket.start;
    return &s->bucket;
}

static void put_some(struct node *n, struct slot *s, uint32_t from, uint32_t until)
{
    uint32_t w = n->windows[s->task];
    unsigned char bytes[PIECE];
    for (uint32_t p = from; p < until; p++) {
        if (!job.mine[w][n->net.rank][p])
            continue;
        for (uint32_t i = 0; i < PIECE; i++)
            bytes[i] = byte_of(w, n->net.rank, p * PIECE + i);
        bucket_put(&s->ranks, s->ranks.start + p * PIECE, bytes, PIECE, n->net.rank);
    }
}

/* With an owner map one puts at a time: what comes from other nodes waits for this node's ranks. */
static void check_alone(const struct node *n, const struct slot *s)
{
    const uint32_t *owner = s->ranks.owner;
    for (uint32_t i = 0; owner && i < BYTES >> s->ranks.grain; i++)
        if (owner[i] && owner[i] != n->net.rank + 1) {
            CHECK(0, "node %u: what is node %u's came before it was filled", n->net.rank, owner[i]);
            return;
        }
}

/* Half of it is put at the first question, the rest some questions later. */
static int node_filled(void *context, uint32_t t)
{
    struct node *n = context;
    struct slot *s = slot_of(n, t);
    CHECK(!job.scatter || job.home[n->windows[t]] == n->net.rank, "asked on another node");
    if (s->put > s->polls)
        return 1;
    if (s->put == 0)
        put_some(n, s, 0, PIECES / 2);
    if (s->put++ < s->polls)
        return 0;
    check_alone(n, s);
    put_some(n, s, PIECES / 2, PIECES);
    bucket_done(&s->ranks);
    return 1;
}

/* Half of it is marked at the first question, the rest some questions later. */
static int node_wanted(void *context, uint32_t t)
{
    struct node *n = context;
    struct slot *s = slot_of(n, t);
    uint32_t w = n->windows[t], from = s->put ? PIECES / 2 : 0;
    uint32_t until = from + PIECES / 2;
    CHECK(job.scatter && !job.brigade && job.home[w] != n->net.rank, "asked what it wants");
    if (s->put++ && s->put <= s->polls)
        return 0;
    for (uint32_t p = from; p < until; p++)
        if (job.mine[w][n->net.rank][p])
            bucket_mark(&s->ranks, s->ranks.start + p * PIECE, PIECE);
    bucket_done(&s->ranks);
    return from != 0;
}

/* The highest node that has a piece, or -1. */
static int holder_of(uint32_t window, uint32_t piece)
{
    int holder = -1;
    for (uint32_t i = 0; i < job.n_nodes; i++)
        if (job.mine[window][i][piece] && (!job.scatter || i == job.home[window]))
            holder = (int)i;
    return holder;
}

static void check_whole(struct node *n, struct slot *s)
{
    uint32_t w = n->windows[s->task], next = 0, at, bytes;
    int covered[PIECES] = {0};
    while (bucket_run(&s->bucket, next, &at, &bytes)) {
        for (uint32_t i = at; i < at + bytes; i++) {
            int holder = holder_of(w, i / PIECE);
            covered[i / PIECE] = 1;
            if (job.overlapping && !job.owned)
                continue;
            unsigned char want = byte_of(w, (uint32_t)holder, i);
            if (holder >= 0 && want == (unsigned char)s->bucket.image[i])
                continue;
            CHECK(0, "node %u window %u byte %u of %d is wrong", n->net.rank, w, i, holder);
            return;
        }
        next = at + bytes;
    }
    for (uint32_t p = 0; p < PIECES; p++)
        if (!job.scatter || job.brigade || job.mine[w][n->net.rank][p])
            CHECK(covered[p] == (holder_of(w, p) >= 0), "node %u window %u piece %u", n->net.rank,
                  w, p);
    if (!job.scatter)
        CHECK(bucket_overlapped(&s->bucket) <= job.overlapping, "window %u overlapped", w);
}

static int anything_failed;

static void node_arrived(void *context, uint32_t t)
{
    struct node *n = context;
    struct slot *s = slot_of(n, t);
    n->arrived++;
    if (!anything_failed)
        check_whole(n, s);
    if (job.scatter)
        return;
    s->used = 0;
    s->free_after = (unsigned)rand_r(&n->seed) % 3;
}

static void node_handed(void *context, uint32_t t)
{
    struct node *n = context;
    struct slot *s = slot_of(n, t);
    n->handed++;
    s->used = 0;
    s->free_after = (unsigned)rand_r(&n->seed) % 3;
}

static int node_failed(void *context)
{
    struct node *n = context;
    if (atomic_load(&owner_died))
        return -EOWNERDEAD;
    if (!n->fail_at || --n->fail_at)
        return n->code && !n->fail_at ? n->code : 0;
    n->fail_at = 1; /* from now on */
    if (n->code == -EOWNERDEAD)
        atomic_store(&owner_died, 1);
    return n->code;
}

static void node_rest(void *context, uint64_t ns)
{
    struct node *n = context;
    (void)ns;
    n->rests++;
    usleep(rand_r(&n->seed) % 8 ? 20 : 300);
}

/* ---- a world of nodes ---- */

/* In half of the jobs. */
static uint32_t grain_of_pieces(void)
{
    return job.n_buckets % 2 ? bucket_grain(BYTES, (uint32_t)__builtin_ctz(PIECE)) : 0;
}

static size_t room_of_bucket(void)
{
    return job.owned ? bucket_owned_room(BYTES, grain_of_pieces()) : bucket_room(BYTES);
}

static void lay(struct bucket *bucket, struct bucket *other, char **memory)
{
    bucket_lay(bucket, *memory, BYTES, grain_of_pieces(), job.owned);
    if (other)
        bucket_lay(other, *memory, BYTES, grain_of_pieces(), job.owned);
    *memory += room_of_bucket();
}

static void prepare_node(uint32_t i, unsigned seed)
{
    struct node *n = &nodes[i];
    free(n->memory);
    *n = (struct node){.net = threads_node(i, job.n_nodes), .seed = seed + i};
    size_t bytes = (job.n_buckets + job.n_spares) * room_of_bucket();
    char *at = n->memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    memset(at, 0x5a, bytes);
    for (uint32_t k = 0; k < job.n_spares; k++)
        lay(&n->spares[k], NULL, &at);
    for (uint32_t b = 0; b < job.n_buckets; b++)
        lay(&n->slots[b].bucket, &n->slots[b].ranks, &at);
    for (uint32_t w = 0; w < job.n_windows; w++)
        if (job.home[w] == i || job.concerned[w][i])
            n->windows[n->n_tasks++] = w;
    n->handoff = (struct handoff){.net = &n->net,
                                  .brigade = job.brigade,
                                  .n_tasks = n->n_tasks,
                                  .spares = n->spares,
                                  .n_spares = job.n_spares,
                                  .context = n,
                                  .task = node_task,
                                  .concerns = node_concerns,
                                  .bucket = node_bucket,
                                  .filled = node_filled,
                                  .wanted = node_wanted,
                                  .arrived = node_arrived,
                                  .handed = node_handed,
                                  .failed = node_failed,
                                  .rest = node_rest};
}

enum pattern {
    STRIPED, /* pieces go round the nodes */
    RANDOM,  /* each piece to a random node, or nobody; some windows concern few */
    BLOCKS,  /* each node one run of a window */
    N_PATTERNS
};

static void prepare(unsigned seed, enum pattern pattern)
{
    unsigned s = seed;
    memset(job.mine, 0, sizeof job.mine);
    memset(job.concerned, 0, sizeof job.concerned);
    for (uint32_t w = 0; w < job.n_windows; w++) {
        job.home[w] = job.one_home ? 0 : (uint32_t)rand_r(&s) % job.n_nodes;
        uint32_t few = pattern == RANDOM ? 1 + (uint32_t)rand_r(&s) % job.n_nodes : job.n_nodes;
        for (uint32_t p = 0; p < PIECES; p++) {
            uint32_t at = pattern == STRIPED  ? p % job.n_nodes
                          : pattern == BLOCKS ? p * job.n_nodes / PIECES
                                              : (uint32_t)rand_r(&s) % (job.n_nodes + 1);
            if (at < few)
                job.mine[w][at][p] = 1;
            if (job.overlapping && p % 5 == 0)
                job.mine[w][(uint32_t)rand_r(&s) % few][p] = 1;
        }
        for (uint32_t i = 0; i < job.n_nodes; i++)
            for (uint32_t p = 0; p < PIECES; p++)
                job.concerned[w][i] |= (int)job.mine[w][i][p];
        for (uint32_t p = 0; p < PIECES && job.scatter; p++)
            job.mine[w][job.home[w]][p] = pattern == BLOCKS || rand_r(&s) % 3;
    }
    atomic_store(&owner_died, 0);
    anything_failed = 0;
    for (uint32_t i = 0; i < job.n_nodes; i++)
        prepare_node(i, seed * 17);
}

static void *node_run(void *argument)
{
    struct node *n = argument;
    n->rc =
        job.scatter ? handoff_scatter(&n->handoff, &n->err) : handoff_collect(&n->handoff, &n->err);
    if (n->rc)
        atomic_store(&owner_died, 1); /* as the engine would: nobody waits for it */
    return NULL;
}

static void run(void)
{
    for (uint32_t i = 0; i < job.n_nodes; i++)
        pthread_create(&nodes[i].thread, NULL, node_run, &nodes[i]);
    for (uint32_t i = 0; i < job.n_nodes; i++)
        pthread_join(nodes[i].thread, NULL);
}

static void check_ended(const char *what, unsigned seed)
{
    for (uint32_t i = 0; i < job.n_nodes; i++) {
        const struct node *n = &nodes[i];
        uint32_t at_home = 0;
        for (uint32_t t = 0; t < n->n_tasks; t++)
            at_home += job.home[n->windows[t]] == i;
        uint32_t away = n->n_tasks - at_home;
        CHECK(n->rc == 0, "%s %u: node %u ends with %d: %s", what, seed, i, n->rc, n->err.text);
        CHECK(n->arrived == (job.scatter ? away : at_home), "%s %u: node %u: %u arrived", what,
              seed, i, n->arrived);
        CHECK(n->handed == (job.scatter ? n->n_tasks : away), "%s %u: node %u: %u handed on", what,
              seed, i, n->handed);
    }
}

/* ---- claims ---- */

static void every_window_arrives_whole(void)
{
    for (unsigned seed = 1; seed <= ROUNDS; seed++) {
        job.n_nodes = 2 + seed % 8;
        job.n_windows = seed % 5 ? 12 : MAX_WINDOWS;
        job.n_buckets = 2 + seed % 2;
        job.n_spares = 1 + seed / 16 % MAX_SPARES;
        job.scatter = seed / 2 % 2;
        job.brigade = seed / 4 % 2;
        job.overlapping = !job.scatter && seed % 3 == 0;
        job.owned = job.overlapping && seed / 8 % 2;
        prepare(seed, seed % N_PATTERNS);
        threads_net.late = seed % 4 ? seed % 4 + 1 : 0;
        run();
        threads_net.late = 0;
        check_ended("random windows", seed);
        if (failures)
            return;
    }
}

static uint64_t carried[MAX_NODES][MAX_NODES];
static uint32_t messages;

static void count_bytes(const struct threads_post *send)
{
    const struct message_header *header = send->from_buf;
    messages++;
    if (send->bytes == sizeof *header)
        carried[send->from][send->to] += header->covered;
}

static void prepare_count(int scatter, int brigade)
{
    job.n_nodes = 4;
    job.n_windows = 16;
    job.n_buckets = 3;
    job.n_spares = 1;
    job.scatter = scatter;
    job.brigade = brigade;
    job.overlapping = job.owned = 0;
    job.one_home = 1;
    prepare(5, scatter ? BLOCKS : STRIPED);
    job.one_home = 0;
    memset(carried, 0, sizeof carried);
    messages = 0;
    threads_net.watch = count_bytes;
    run();
    threads_net.watch = NULL;
    check_ended("counting", 0);
}

/* Four nodes hold a quarter of each window; node 0 is home of all. */
static void links_carry_what_the_way_says(void)
{
    uint64_t quarter = 16 * BYTES / 4, whole = 16 * BYTES;
    prepare_count(0, 0);
    for (uint32_t i = 1; i < 4; i++)
        CHECK(carried[i][0] == quarter, "simple: %u sent %llu", i,
              (unsigned long long)carried[i][0]);
    prepare_count(0, 1);
    CHECK(carried[1][2] == quarter && carried[2][3] == 2 * quarter &&
              carried[3][0] == 3 * quarter && !carried[1][0] && !carried[2][0],
          "brigade: %llu %llu %llu", (unsigned long long)carried[1][2],
          (unsigned long long)carried[2][3], (unsigned long long)carried[3][0]);
    prepare_count(1, 0);
    CHECK(carried[0][1] == quarter && carried[0][2] == quarter && carried[0][3] == quarter,
          "simple, scattered: %llu", (unsigned long long)carried[0][1]);
    prepare_count(1, 1);
    CHECK(carried[0][1] == whole && carried[1][2] == whole && carried[2][3] == whole &&
              !carried[0][2],
          "brigade, scattered");
}

/* Windows that a node gets from another one, or hands to it. */
static uint32_t passes(void)
{
    uint32_t n = 0;
    for (uint32_t w = 0; w < job.n_windows; w++)
        for (uint32_t i = 0; i < job.n_nodes; i++)
            n += i != job.home[w] && job.concerned[w][i];
    return n;
}

/* A header and a body, and one question before them where nodes ask. */
static void no_message_is_sent_that_nobody_needs(void)
{
    for (int way = 0; way < 4; way++) {
        int scatter = way / 2, brigade = way % 2, asks = scatter && !brigade;
        prepare_count(scatter, brigade);
        CHECK(messages == passes() * (asks ? 3u : 2u), "scatter %d, brigade %d: %u messages for %u",
              scatter, brigade, messages, passes());
    }
}

/* One of five nodes fails after any number of steps: the others come to the end with it. */
static void a_failure_drains_every_node(void)
{
    for (unsigned step = 1; step <= ROUNDS / 4; step++) {
        job.n_nodes = 5;
        job.n_windows = 20;
        job.n_buckets = 2;
        job.n_spares = 1 + step / 4 % MAX_SPARES;
        job.scatter = step % 2;
        job.brigade = step / 2 % 2;
        job.overlapping = job.owned = 0;
        prepare(step, step % N_PATTERNS);
        anything_failed = 1;
        nodes[step % 5].fail_at = step;
        nodes[step % 5].code = -ENOSPC;
        memset(carried, 0, sizeof carried);
        threads_net.watch = count_bytes;
        run();
        threads_net.watch = NULL;
        check_ended("failure", step);
        for (uint32_t i = 0; step == 1 && i < 5; i++)
            CHECK(carried[1][i] == 0, "node 1 sent %llu bytes after it failed",
                  (unsigned long long)carried[1][i]);
    }
}

/* Where a rank has died nobody waits for messages, nor sends any; the memory stays for the net. */
static void a_death_ends_every_node_at_once(void)
{
    for (unsigned step = 1; step <= 30; step++) {
        job.n_nodes = 4;
        job.n_windows = 20;
        job.n_buckets = 2;
        job.n_spares = 1 + step / 4 % MAX_SPARES;
        job.scatter = step % 2;
        job.brigade = step / 2 % 2;
        prepare(step, step % N_PATTERNS);
        anything_failed = 1;
        nodes[step % 4].fail_at = step;
        nodes[step % 4].code = -EOWNERDEAD;
        run();
        for (uint32_t i = 0; i < job.n_nodes; i++)
            CHECK(nodes[i].rc == -EOWNERDEAD || nodes[i].rc == 0, "step %u: node %u: %d", step, i,
                  nodes[i].rc);
        CHECK(nodes[step % 4].rc == -EOWNERDEAD, "step %u", step);
    }
}

int main(void)
{
    alarm(100); /* a wait for ever is a failure too */
    every_window_arrives_whole();
    links_carry_what_the_way_says();
    no_message_is_sent_that_nobody_needs();
    a_failure_drains_every_node();
    a_death_ends_every_node_at_once();
    for (uint32_t i = 0; i < MAX_NODES; i++)
        free(nodes[i].memory);
    printf(failures ? "%d failures\n" : "ok\n", failures);
    return failures != 0;
}
