/* Who writes which windows: what must hold whatever the extent, the stripes and the ranks are. */
#include <stdio.h>
#include <string.h>

#include "move/claim.h"
#include "move/plan_own.h"

static uint64_t state = 7;
static int failures;

static uint64_t below(uint64_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 20) % n;
}

#define CHECK(ok)                                                         \
    do                                                                    \
        if (!(ok) && failures++ < 10)                                     \
            printf("line %d, round %d: %s\n", __LINE__, (int)round, #ok); \
    while (0)

static struct io_plan plan;
static const struct plan_place place = {.stripe_bytes = 1 << 20};
static uint32_t order[5000];

static void check_plan(const struct io_hints *hints, const struct plan_place *there,
                       const struct io_extent *e, const struct plan_ranks *ranks, int round)
{
    plan_make(&plan, hints, there, e, ranks);
    uint64_t stripe = there->stripe_bytes, w = plan.window_bytes, unit = stripe > w ? stripe : w;
    if (!hints->writers && ranks->n_nodes > 1 && there->lock_bytes > unit)
        unit = there->lock_bytes;
    CHECK(plan.transport != IO_AUTO);
    CHECK(hints->transport == IO_AUTO || plan.transport == hints->transport);
    CHECK((w & (w - 1)) == 0 && (stripe % w == 0 || w % stripe == 0));
    CHECK(plan.n_writers >= 1 && plan.n_writers <= ranks->size);
    CHECK(!hints->writers || plan.n_writers <= hints->writers);
    CHECK(plan.first[0] * w <= e->low && plan.first[plan.n_writers] * w >= e->high);
    for (uint32_t d = 0; d < plan.n_writers; d++) {
        CHECK(plan.first[d] < plan.first[d + 1]);
        CHECK(plan.first[d] * w % unit == 0); /* no two writers share a stripe */
        for (uint32_t other = 0; other < d; other++)
            CHECK(plan.writers[d] != plan.writers[other]); /* a rank has one thread for it */
    }
    uint32_t claims = plan_claims(ranks->room_bytes, ranks->n_nodes);
    CHECK(claims >= PLAN_MIN_CLAIMS && claims % 64 == 0 && claims >= plan.n_writers);
    /* Three slots and the spare, behind the claims: slots never come to less. */
    CHECK(8192 + plan_claims_bytes(claims, ranks->n_nodes) + 4 * (bucket_room((uint32_t)w) + 64) <=
          ranks->room_bytes);
    /* A window that is done in parts has room for their owners. */
    CHECK(bucket_owned_room((uint32_t)(w >> CLAIM_PARTS_SHIFT), 0) <= bucket_room((uint32_t)w));
    CHECK(bucket_owned_room((uint32_t)(w >> CLAIM_COARSE_SHIFT), CLAIM_COARSE_GRAIN) <=
          bucket_room((uint32_t)w));
}

static void random_plan(int round)
{
    struct io_hints hints;
    hints_default(&hints);
    hints.transport = (enum io_transport)below(5);
    hints.writers = below(2) ? 0 : 1 + (uint32_t)below(3000);
    uint32_t nodes = 1 + (uint32_t)below(60), size = nodes + (uint32_t)below(4000);
    for (uint32_t i = 0; i < size; i++)
        order[i] = size - 1 - i;
    struct plan_ranks ranks = {
        .size = size, .n_nodes = nodes, .order = order, .room_bytes = UINT64_C(131072) << below(8)};
    struct io_extent e = {.low = below(UINT64_C(1) << (1 + below(40)))};
    e.high = e.low + 1 + below(UINT64_C(1) << (1 + below(40)));
    e.run = 1 + below(1 << 20);
    struct plan_place there = {.stripe_bytes = UINT64_C(65536) << below(10),
                               .lock_bytes = below(2) ? 0 : UINT64_C(65536) << below(14)};
    check_plan(&hints, &there, &e, &ranks, round);
}

static void choices(int round)
{
    struct io_hints hints;
    struct plan_ranks ranks = {.size = 16, .n_nodes = 1, .order = order, .room_bytes = 8 << 20};
    struct io_extent e = {.low = 0, .high = 64 << 20, .run = 1024};
    hints_default(&hints);
    plan_make(&plan, &hints, &place, &e, &ranks);
    CHECK(plan.transport == IO_SIMPLE && plan.window_bytes == 1 << 20);
    e.run = 4 << 20;
    plan_make(&plan, &hints, &place, &e, &ranks);
    CHECK(plan.transport == IO_DIRECT && strstr(plan.reason, "runs are long"));
    e.high = 100; /* a small call does not touch large memory */
    plan_make(&plan, &hints, &place, &e, &ranks);
    CHECK(plan.window_bytes == 65536 && plan.n_writers == 1);
    e.low = e.high = 0;
    plan_make(&plan, &hints, &place, &e, &ranks);
    CHECK(plan.n_writers == 0);
    e = (struct io_extent){.low = (UINT64_C(1) << 62) + 5, .high = UINT64_C(1) << 63, .run = 1};
    check_plan(&hints, &place, &e, &ranks, round);
}

/* Windows in their owners' memory: as long as there is room for, but several turns each. */
static void blocks(int round)
{
    struct io_hints hints;
    struct plan_ranks ranks = {.size = 16, .n_nodes = 2, .room_bytes = 16 << 20};
    struct io_extent e = {.low = 0, .high = UINT64_C(1) << 30, .run = 24};
    hints_default(&hints);
    plan_blocks(&plan, &hints, &place, &e, &ranks);
    CHECK(plan.n_writers == 4 && plan.writers[1] == 4 && plan.window_bytes == 16 << 20);
    e.high = 16 << 20;
    plan_blocks(&plan, &hints, &place, &e, &ranks);
    CHECK(plan.n_writers == 4 && plan.window_bytes == 1 << 20 && plan.first[4] == 16);
    ranks.room_bytes = 4096;
    plan_blocks(&plan, &hints, &place, &e, &ranks);
    CHECK(plan.window_bytes == 4096 && plan.first[1] == 4 << 8);
    e.high = 0;
    plan_blocks(&plan, &hints, &place, &e, &ranks);
    CHECK(plan.n_writers == 0);
}

/* Smaller for short runs of a few ranks on one node. */
static void near_blocks(void)
{
    static const struct {
        uint32_t size, n_nodes;
        uint64_t run, room, window;
    } cases[] = {
        {4, 1, 24, 4 << 20, 256 << 10}, {8, 1, 24, 4 << 20, 512 << 10},
        {4, 1, 24, 64 << 10, 64 << 10}, {9, 1, 24, 4 << 20, 512 << 10},
        {16, 1, 24, 4 << 20, 1 << 20},  {64, 1, 24, 4 << 20, 1 << 20},
        {4, 2, 24, 4 << 20, 4 << 20},   {4, 1, 1 << 20, 4 << 20, 4 << 20},
    };
    struct io_hints hints;
    hints_default(&hints);
    for (size_t round = 0; round < sizeof cases / sizeof *cases; round++) {
        struct plan_ranks ranks = {.size = cases[round].size,
                                   .n_nodes = cases[round].n_nodes,
                                   .room_bytes = cases[round].room};
        struct io_extent e = {.low = 0, .high = UINT64_C(1) << 30, .run = cases[round].run};
        plan_blocks(&plan, &hints, &place, &e, &ranks);
        CHECK(plan.window_bytes == cases[round].window);
    }
}

/* So are windows of what few ranks of one node write, if it is little; or else windows are as long
 * as a stripe. */
static void near_windows(void)
{
    static const struct {
        uint32_t size, n_nodes;
        int writes, near;
        uint64_t run, high, window;
    } cases[] = {
        {4, 1, 1, 1, 24, 8 << 20, 512 << 10},      {1, 1, 1, 1, 24, 8 << 20, 128 << 10},
        {16, 1, 1, 1, 24, 16 << 20, 1 << 20},      {17, 1, 1, 0, 24, 8 << 20, 1 << 20},
        {4, 1, 0, 0, 24, 8 << 20, 1 << 20},        {4, 2, 1, 0, 24, 8 << 20, 1 << 20},
        {4, 1, 1, 0, 24, (16 << 20) + 1, 1 << 20}, {4, 1, 1, 0, 1 << 20, 8 << 20, 1 << 20},
    };
    struct io_hints hints;
    hints_default(&hints);
    for (size_t round = 0; round < sizeof cases / sizeof *cases; round++) {
        struct plan_place there = {.stripe_bytes = 1 << 20, .writes = cases[round].writes};
        struct plan_ranks ranks = {
            .size = cases[round].size, .n_nodes = cases[round].n_nodes, .room_bytes = 8 << 20};
        struct io_extent e = {.low = 0, .high = cases[round].high, .run = cases[round].run};
        plan_make(&plan, &hints, &there, &e, &ranks);
        CHECK(plan.window_bytes == cases[round].window);
        CHECK(plan.is_near == cases[round].near);
    }
}

/* What one node may write at a time has one writer, and later calls the same one. */
static void turns(int round)
{
    struct io_hints hints;
    struct plan_place there = {.stripe_bytes = 1 << 20, .lock_bytes = 64 << 20};
    struct plan_ranks ranks = {.size = 16, .n_nodes = 4, .room_bytes = 8 << 20};
    struct io_extent e = {.low = 0, .high = 64 << 20, .run = 4 << 20};
    hints_default(&hints);
    plan_make(&plan, &hints, &there, &e, &ranks);
    CHECK(plan.transport == IO_SIMPLE && plan.n_writers == 1 && plan.writers[0] == 0);
    CHECK(strstr(plan.reason, "nodes would wait") && plan.window_bytes == 1 << 20);
    CHECK(!plan_may_early(&hints, &there, &(struct plan_share){.spread = {.runs = 1, .run = e.run}},
                          &ranks));
    e.low = UINT64_C(65) << 20, e.high = UINT64_C(130) << 20;
    plan_make(&plan, &hints, &there, &e, &ranks);
    CHECK(plan.n_writers == 2 && plan.writers[0] == 4 && plan.writers[1] == 8);
    CHECK(plan.first[0] == 64 && plan.first[1] == 128 && plan.first[2] == 192);
    plan_blocks(&plan, &hints, &there, &e, &ranks);
    CHECK(plan.n_writers == 2 && plan.writers[0] == 4 && plan.writers[1] == 8);
    e.low = 0, e.high = UINT64_C(4) << 30; /* enough for two of each node */
    plan_make(&plan, &hints, &there, &e, &ranks);
    CHECK(plan.n_writers == 8 && plan.writers[1] == 2 &&
          plan.first[1] * plan.window_bytes == 512 << 20);
    e.run = 64 << 20; /* a rank's own */
    plan_make(&plan, &hints, &there, &e, &ranks);
    CHECK(plan.transport == IO_DIRECT &&
          plan_may_early(&hints, &there, &(struct plan_share){.spread = {.runs = 1, .run = e.run}},
                         &ranks));
    e.run = 4 << 20;
    ranks.n_nodes = 40, ranks.size = 40;
    plan_make(&plan, &hints, &there, &e, &ranks);
    CHECK(plan.transport == IO_BRIGADE && plan.n_writers == 40);
    ranks.n_nodes = 1; /* one client: nobody else to wait for */
    plan_make(&plan, &hints, &there, &e, &ranks);
    CHECK(plan.transport == IO_DIRECT && plan.n_writers == 2 &&
          plan_may_early(&hints, &there, &(struct plan_share){.spread = {.runs = 1, .run = e.run}},
                         &ranks));
    ranks.n_nodes = 4, e.high = 64 << 20;
    hints.writers = 4; /* as asked */
    plan_make(&plan, &hints, &there, &e, &ranks);
    CHECK(plan.n_writers == 4);
}

/* Little in short runs has one writer, on one node; what one rank reads has one reader. */
static void one_writer(int round)
{
    struct io_hints hints;
    struct plan_place there = {.stripe_bytes = 1 << 20, .writes = 1};
    struct plan_ranks ranks = {.size = 16, .n_nodes = 1, .room_bytes = 8 << 20};
    struct io_extent e = {.low = 0, .high = 16 << 20, .run = 1024};
    hints_default(&hints);
    plan_make(&plan, &hints, &there, &e, &ranks);
    CHECK(plan.n_writers == 1);
    plan_blocks(&plan, &hints, &there, &e, &ranks);
    CHECK(plan.n_writers == 1);
    e.high++;
    plan_make(&plan, &hints, &there, &e, &ranks);
    CHECK(plan.n_writers == 2);
    e.high--, e.run = 64 << 10;
    plan_make(&plan, &hints, &there, &e, &ranks);
    CHECK(plan.n_writers == 2);
    e.run = 1024, ranks.n_nodes = 2;
    plan_make(&plan, &hints, &there, &e, &ranks);
    CHECK(plan.n_writers == 4);
    ranks.n_nodes = 1, there.writes = 0;
    plan_make(&plan, &hints, &there, &e, &ranks);
    CHECK(plan.n_writers == 2);
    e.readers = 1, e.run = 4 << 20;
    plan_make(&plan, &hints, &there, &e, &ranks);
    CHECK(plan.n_writers == 1 && plan.transport == IO_SIMPLE &&
          strstr(plan.reason, "few should read"));
    plan_blocks(&plan, &hints, &there, &e, &ranks);
    CHECK(plan.n_writers == 1);
    e.readers = 2;
    plan_make(&plan, &hints, &there, &e, &ranks);
    CHECK(plan.n_writers == 2 && plan.transport == IO_SIMPLE);
    hints.writers = 3;
    plan_make(&plan, &hints, &there, &e, &ranks);
    CHECK(plan.n_writers == 3);
}

int main(void)
{
    for (int round = 1; round <= 4000; round++)
        random_plan(round);
    choices(0);
    one_writer(0);
    blocks(0);
    near_blocks();
    near_windows();
    turns(0);
    return failures != 0;
}
