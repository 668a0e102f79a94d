/* What every back end of the seam (src/pgas/pgas.h) does, on any number of ranks.
 *
 *   conform BACK-END
 *
 * Prints "ok" and what it ran on, or claims that do not hold. */
#include <errno.h>

#include "claim.h"
#include "group.h"

#define BYTES ((size_t)300000)

static uint64_t state;

static uint64_t below(uint64_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 33) % n;
}

static unsigned char byte_of(uint32_t rank, uint32_t round, size_t i)
{
    return (unsigned char)(rank * 31 + round * 7 + i * 13 + i / 251);
}

static void fill(unsigned char *at, size_t n, uint32_t rank, uint32_t round)
{
    for (size_t i = 0; i < n; i++)
        at[i] = byte_of(rank, round, i);
}

static size_t wrong(const unsigned char *at, size_t n, uint32_t rank, uint32_t round)
{
    size_t bad = 0;
    for (size_t i = 0; i < n; i++)
        bad += at[i] != byte_of(rank, round, i);
    return bad;
}

static void meet(struct pgas *p)
{
    struct brg_error err = {0};
    if (pgas_barrier(p, &err))
        group_die("barrier", &err);
}

static void *take(struct pgas *p, size_t bytes)
{
    struct brg_error err = {0};
    void *at = NULL;
    if (p->allocate(p, bytes, &at, &err))
        group_die("allocate", &err);
    CHECK((uintptr_t)at % 64 == 0, "%zu bytes at %p", bytes, at);
    memset(at, 0, bytes);
    meet(p);
    return at;
}

/* Each rank has a stretch in the memory of every other. */
static void puts_arrive_at_every_rank(struct pgas *p)
{
    size_t part = BYTES / p->size;
    unsigned char *at = take(p, BYTES), *mine = malloc(part);
    for (uint32_t round = 0; round < 3; round++) {
        fill(mine, part, p->rank, round);
        for (uint32_t i = 0; i < p->size; i++)
            CHECK(p->put(p, at + p->rank * part, mine, part, (p->rank + i) % p->size) == 0, "put");
        CHECK(p->quiet(p) == 0, "quiet");
        meet(p);
        for (uint32_t rank = 0; rank < p->size; rank++)
            CHECK(wrong(at + rank * part, part, rank, round) == 0, "bytes of rank %u", rank);
        meet(p);
    }
    free(mine);
    p->release(p, at);
}

static void gets_take_any_stretch(struct pgas *p)
{
    unsigned char *at = take(p, BYTES), *mine = malloc(BYTES);
    fill(at, BYTES, p->rank, 5);
    CHECK(p->quiet(p) == 0, "quiet");
    meet(p);
    for (int i = 0; i < 20; i++) {
        uint32_t rank = (uint32_t)below(p->size);
        size_t from = below(BYTES), n = below(BYTES - from + 1), bad = 0;
        CHECK(p->get(p, mine, at + from, n, rank) == 0, "get");
        CHECK(p->quiet(p) == 0, "quiet");
        for (size_t k = 0; k < n; k++)
            bad += mine[k] != byte_of(rank, 5, from + k);
        CHECK(bad == 0, "%zu of %zu bytes from %zu of rank %u", bad, n, from, rank);
    }
    meet(p);
    free(mine);
    p->release(p, at);
}

static void pointers_reach_the_memory_of_others(struct pgas *p)
{
    uint64_t *at = take(p, 4096 * sizeof *at);
    CHECK(p->pointer(p, at + 7, p->rank) == at + 7, "own memory");
    uint32_t right = (p->rank + 1) % p->size, left = (p->rank + p->size - 1) % p->size;
    uint64_t *there = p->pointer(p, at + 7, right), *back = p->pointer(p, at + 7, left);
    if (there)
        *there = 1000 + p->rank;
    CHECK(p->quiet(p) == 0, "quiet");
    meet(p);
    if (back)
        CHECK(at[7] == 1000 + left, "%lu", (unsigned long)at[7]);
    CHECK(p->n_nodes > 1 || (there && back), "one node, but no pointers");
    p->release(p, at);
}

static void additions_are_atomic(struct pgas *p)
{
    uint64_t *at = take(p, p->size * sizeof *at), before, last = 0;
    int times = p->n_nodes == 1 ? 3000 : 60; /* between nodes each may take a while */
    meet(p);
    for (int i = 0; i < times; i++)
        for (uint32_t rank = 0; rank < p->size; rank++) {
            CHECK(p->fetch_add(p, at + rank, p->rank + 1, rank, &before) == 0, "add");
            if (rank == p->rank)
                CHECK(before >= last, "it fell to %lu", (unsigned long)(last = before));
        }
    meet(p);
    uint64_t all = (uint64_t)p->size * (p->size + 1) / 2 * (uint64_t)times;
    for (uint32_t rank = 0; rank < p->size; rank++) {
        CHECK(p->fetch_add(p, at + rank, 0, rank, &before) == 0, "add");
        CHECK(before == all, "%lu, not %lu", (unsigned long)before, (unsigned long)all);
    }
    CHECK(at[p->rank] == all, "the rank itself sees %lu", (unsigned long)at[p->rank]);
    p->release(p, at);
}

static void reductions_take_every_rank(struct pgas *p)
{
    struct brg_error err = {0};
    int64_t n = p->size, r = p->rank;
    for (int i = 0; i < 10; i++) {
        int64_t v[PGAS_VALUES], *w = v;
        for (int k = 0; k < PGAS_VALUES; k++)
            v[k] = k == 1 ? INT64_MAX : k == 2 ? INT64_MIN : 100 * k + r;
        CHECK(!p->reduce(p, PGAS_MIN, v, PGAS_VALUES, &err), "min");
        CHECK(w[0] == 0 && w[1] == INT64_MAX && w[2] == INT64_MIN && w[15] == 1500, "min");
        v[3] = r == n - 1 ? INT64_MAX : INT64_MIN;
        v[4] = INT64_MIN;
        v[5] = -r - 1;
        CHECK(!p->reduce(p, PGAS_MAX, v + 3, 3, &err), "max");
        CHECK(w[3] == INT64_MAX && w[4] == INT64_MIN && w[5] == -1, "max");
        v[0] = r + i;
        v[1] = -1;
        CHECK(!p->reduce(p, PGAS_SUM, v, 2, &err), "sum");
        CHECK(w[0] == n * (n - 1) / 2 + n * i && w[1] == -n, "sum %ld %ld", (long)v[0], (long)v[1]);
    }
}

static void anyone_can_broadcast(struct pgas *p)
{
    static const size_t sizes[] = {1, 8, 4096, 8193, 30000};
    struct brg_error err = {0};
    unsigned char *buf = malloc(30000);
    for (uint32_t round = 0; round < 15; round++) {
        uint32_t root = (uint32_t)below(p->size);
        size_t n = sizes[round % 5];
        fill(buf, n, p->rank, round);
        CHECK(!p->broadcast(p, buf, n, root, &err), "broadcast");
        CHECK(wrong(buf, n, root, round) == 0, "%zu bytes of rank %u", n, root);
    }
    free(buf);
}

/* A put before a meeting is seen after it; one of the next round is not seen before. */
static void meetings_order_what_was_put(struct pgas *p)
{
    uint64_t *at = take(p, 2 * sizeof *at);
    uint32_t right = (p->rank + 1) % p->size, left = (p->rank + p->size - 1) % p->size;
    for (uint64_t round = 1; round <= 50; round++) {
        uint64_t value = round << 32 | p->rank;
        CHECK(p->put(p, at + round % 2, &value, sizeof value, right) == 0, "put");
        CHECK(p->quiet(p) == 0, "quiet");
        meet(p);
        CHECK(at[round % 2] == (round << 32 | left), "round %lu: %lx", (unsigned long)round,
              (unsigned long)at[round % 2]);
    }
    p->release(p, at);
}

static void too_much_memory_is_refused_to_all(struct pgas *p)
{
    struct brg_error err = {0};
    void *at = NULL;
    int rc = p->allocate(p, SIZE_MAX / 8, &at, &err);
    CHECK(rc < 0 && rc == err.code && err.text[0] && !at, "%d %s", rc, err.text);
    meet(p);
}

/* That of the lowest rank that has one. */
static void a_failure_becomes_everybodys(struct pgas *p)
{
    struct brg_error none = {.rank = -1}, mine = {.rank = -1, .code = -(int)p->rank - 1};
    uint32_t least = p->size / 2;
    CHECK(pgas_failure(p, &none) == 0, "%d", none.code);
    mine.code = p->rank < least ? 0 : mine.code;
    int rc = pgas_failure(p, &mine);
    CHECK(rc == mine.code && rc == -(int)least - 1 && mine.rank == (int)least, "%d of rank %d", rc,
          mine.rank);
}

/* The ranks start, start + 2^log_stride, ...: those who are not among them do something else. */
static void groups_are_apart(struct pgas *all)
{
    struct brg_error err = {0};
    unsigned log_stride = all->size > 3;
    uint32_t mine = all->rank & ((1u << log_stride) - 1);
    uint32_t size = (all->size - mine + (1u << log_stride) - 1) >> log_stride;
    struct pgas *p, *again;
    for (int i = 0; i < 5; i++) {
        if (pgas_shmem(mine, log_stride, size, &p, &err) ||
            pgas_shmem(mine, log_stride, size, &again, &err))
            group_die("group", &err);
        CHECK(p->size == size && p->rank == all->rank >> log_stride, "rank %u", p->rank);
        unsigned char *kept = take(again, 5000);
        fill(kept, 5000, again->rank, 3);
        puts_arrive_at_every_rank(p);
        additions_are_atomic(p);
        if (mine == 0)
            meetings_order_what_was_put(p);
        reductions_take_every_rank(again);
        too_much_memory_is_refused_to_all(p);
        CHECK(wrong(kept, 5000, again->rank, 3) == 0, "memory of another group");
        again->release(again, kept);
        p->close(p);
        again->close(again);
    }
    CHECK(pgas_shmem(0, 0, all->size + 1, &p, &err) == -EINVAL, "more ranks than there are");
    CHECK(pgas_shmem(all->rank ? 0 : 1, 0, 1, &p, &err) == -EINVAL || all->size == 1, "not in");
}

int main(int argc, char **argv)
{
    struct test_group g;
    (void)argc;
    group_open(&g, argv + 1, 1 << 20);
    struct pgas *p = g.pgas;
    state = p->rank + 1;
    a_failure_becomes_everybodys(p);
    puts_arrive_at_every_rank(p);
    gets_take_any_stretch(p);
    pointers_reach_the_memory_of_others(p);
    additions_are_atomic(p);
    reductions_take_every_rank(p);
    state = 99;
    anyone_can_broadcast(p);
    meetings_order_what_was_put(p);
    too_much_memory_is_refused_to_all(p);
    if (!strcmp(p->name, "OpenSHMEM"))
        groups_are_apart(p);
    group_end(&g, failures);
}
