/* How a request's runs lie, and which of them a rank moves by itself. */
#include "move/alone.h"
#include "move/plan.h"
#include "move/request.h"

#include <stdlib.h>
#include <unistd.h>

#include "../claim.h"

static char memory[1 << 20];

/* `n` pieces of `bytes`, each `apart` behind the one before; every `gap`th one `far` further. */
static void pieces_of(struct io_request *request, size_t n, uint64_t bytes, uint64_t apart,
                      size_t gap, uint64_t far)
{
    static brg_piece pieces[4096];
    uint64_t offset = 77;
    struct brg_error err;
    for (size_t i = 0; i < n; i++) {
        pieces[i] = (brg_piece){.offset = offset, .bytes = bytes};
        offset += apart + (gap && i % gap == gap - 1 ? far : 0);
    }
    CHECK(!request_of_pieces(request, pieces, n, memory, &err), "%s", err.text);
}

static struct request_spread spread_of(size_t n, uint64_t bytes, uint64_t apart, size_t gap,
                                       uint64_t far)
{
    struct io_request request;
    pieces_of(&request, n, bytes, apart, gap, far);
    struct request_spread s = request_spread(&request);
    request_destroy(&request);
    return s;
}

static void what_meets_in_the_file_is_one_run(void)
{
    struct request_spread s = spread_of(100, 20, 20, 0, 0);
    CHECK(s.runs == 1 && s.run == 2000 && s.pitch == 2000, "all together");
    s = spread_of(12, 20, 20, 4, 10000); /* three runs of four pieces */
    CHECK(s.runs == 3 && s.run == 80 && s.pitch == 10080, "%llu of %llu, %llu apart",
          (unsigned long long)s.runs, (unsigned long long)s.run, (unsigned long long)s.pitch);
    struct io_request nothing;
    request_none(&nothing);
    CHECK(request_spread(&nothing).runs == 0, "nothing");
}

static void few_pieces_are_counted_and_many_are_estimated(void)
{
    struct request_spread s = spread_of(5, 8, 4096, 0, 0);
    CHECK(s.runs == 5 && s.run == 8 && s.pitch == 4096, "five");
    s = spread_of(3000, 8, 4096, 0, 0);
    CHECK(s.runs == 3000 && s.run == 8 && s.pitch == 4096, "three thousand");
}

/* Rows of a block: a mean would say that its runs are far apart. */
static void runs_in_clusters_are_close(void)
{
    struct request_spread s = spread_of(1000, 80, 800, 10, 1 << 20);
    CHECK(s.pitch == 800, "%llu", (unsigned long long)s.pitch);
    s = spread_of(1000, 80, 800, 2, 1 << 20); /* pairs */
    CHECK(s.pitch == 800, "%llu", (unsigned long long)s.pitch);
}

/* One of three lies close behind the one before. */
static void a_third_of_close_ones_is_enough(void)
{
    brg_piece pieces[30];
    struct io_request request;
    struct brg_error err;
    for (size_t i = 0; i < 30; i++)
        pieces[i] = (brg_piece){.offset = (i << 16) - (i % 3 == 2) * 65000, .bytes = 8};
    CHECK(!request_of_pieces(&request, pieces, 30, memory, &err), "%s", err.text);
    CHECK(request_spread(&request).pitch == 536, "%llu",
          (unsigned long long)request_spread(&request).pitch);
    request_destroy(&request);
}

static void the_middle_is_looked_at_too(void)
{
    static brg_piece pieces[4000];
    struct io_request request;
    struct brg_error err;
    for (size_t i = 0; i < 4000; i++)
        pieces[i] = (brg_piece){.offset = i < 40 ? i << 16 : (40 << 16) + i * 1000, .bytes = 8};
    CHECK(!request_of_pieces(&request, pieces, 4000, memory, &err), "%s", err.text);
    struct request_spread s = request_spread(&request);
    CHECK(s.pitch == 1000, "%llu", (unsigned long long)s.pitch);
    request_destroy(&request);
}

/* ---- the rule ---- */

static struct io_hints hints;
static struct plan_place place = {.stripe_bytes = 1 << 20};

static int may(int writes, uint64_t runs, uint64_t run, uint64_t pitch, enum store_where where,
               uint32_t size, uint32_t nodes)
{
    struct plan_share share = {
        .writes = writes, .runs = runs, .run = run, .pitch = pitch, .where = where};
    struct plan_ranks ranks = {.size = size, .n_nodes = nodes, .room_bytes = 8 << 20};
    return plan_may_early(&hints, &place, &share, &ranks);
}

static void runs_far_apart_are_moved_by_their_rank(void)
{
    hints_default(&hints);
    CHECK(may(0, 1000, 20, 4 * 4096, STORE_IN_MEMORY, 4, 1), "read from memory");
    CHECK(!may(0, 1000, 20, 4 * 4096 - 4, STORE_IN_MEMORY, 4, 1), "closer");
    CHECK(!may(0, 1000, 20, 4 * 4096, STORE_IN_MEMORY, 8, 1), "others lie between");
    CHECK(!may(0, 1000, 20, 4 * 4096, STORE_ON_DISK, 4, 1), "a disk reads on by itself");
    CHECK(may(0, 1000, 20, 4 << 14, STORE_ON_DISK, 4, 1), "not so far");
    CHECK(!may(0, 1000, 20, 4 << 14, STORE_UNKNOWN, 4, 1), "over a network");
    CHECK(may(0, 1000, 20, 4 << 16, STORE_UNKNOWN, 4, 4), "not so far, on any number of nodes");
    CHECK(may(1, 1000, 20, 4 * 4116, STORE_ON_DISK, 4, 1), "written");
    CHECK(!may(1, 1000, 20, 4 * 4115, STORE_IN_MEMORY, 4, 1), "holes that are filled");
    CHECK(!may(1, 1000, 20, 1 << 20, STORE_UNKNOWN, 4, 4), "nodes that write side by side");
    CHECK(may(1, 1000, 16 << 10, 64 << 10, STORE_ON_DISK, 4, 1), "too long to be copied");
}

/* When it is known how far all reach. */
static int scattered(int writes, uint64_t runs, uint64_t run, uint64_t pitch, uint64_t reach,
                     enum store_where where, uint32_t size)
{
    struct plan_share share = {
        .writes = writes, .runs = runs, .run = run, .pitch = pitch, .where = where};
    struct plan_ranks ranks = {.size = size, .n_nodes = 1, .room_bytes = 8 << 20};
    struct io_extent extent = {.low = 1000, .high = 1000 + reach, .run = run};
    return plan_is_scattered(&hints, &extent, &share, &ranks);
}

static void runs_that_turn_out_to_lie_far_apart_are_as_well(void)
{
    uint64_t all =
        64 * 8192; /* of 8 ranks, 64 runs each: one every 8 KiB if they lie side by side */
    hints_default(&hints);
    CHECK(scattered(0, 64, 20, 8192, 8 * all, STORE_IN_MEMORY, 8), "side by side");
    CHECK(!may(0, 64, 20, 8192, STORE_IN_MEMORY, 8, 1), "which no rank knows before");
    CHECK(!scattered(0, 64, 20, 8192, 3 * all, STORE_IN_MEMORY, 8), "they lie in each other");
    CHECK(!scattered(0, 64, 20, 4000, 8 * all, STORE_IN_MEMORY, 8), "one rank's lie close");
    CHECK(!scattered(0, 64, 20, 8192, 8 * all, STORE_ON_DISK, 8), "one rank would wait");
    CHECK(scattered(1, 64, 20, 8192, 8 * all, STORE_ON_DISK, 8), "written");
    CHECK(!scattered(0, 1, 20, 8192, 8 * all, STORE_IN_MEMORY, 8), "one run each");
    CHECK(!scattered(0, 64, 20, 8192, 0, STORE_IN_MEMORY, 8), "past the end");
    hints.writers = 1;
    CHECK(!scattered(0, 64, 20, 8192, 8 * all, STORE_IN_MEMORY, 8), "one writer");
}

static void few_runs_are_as_one(void)
{
    hints_default(&hints);
    CHECK(may(0, 16, 20, 100, STORE_IN_MEMORY, 4, 1), "read");
    CHECK(!may(0, 17, 20, 100, STORE_IN_MEMORY, 4, 1), "more");
    CHECK(!may(0, 16, 20, 100, STORE_ON_DISK, 4, 1), "which wait");
    CHECK(!may(0, 16, 20, 100, STORE_IN_MEMORY, 17, 1), "of many ranks");
    CHECK(!may(0, 16, 20, 100, STORE_IN_MEMORY, 4, 2), "on several nodes");
    CHECK(may(1, 2, 20, 100, STORE_IN_MEMORY, 4, 1), "written");
    CHECK(!may(1, 3, 20, 100, STORE_IN_MEMORY, 4, 1), "more");
    CHECK(!may(1, 2, 20, 100, STORE_IN_MEMORY, 17, 1), "by many ranks");
}

static void who_asks_for_a_way_gets_it(void)
{
    hints_default(&hints);
    hints.transport = IO_SIMPLE;
    CHECK(!may(0, 1000, 20, 4 << 20, STORE_IN_MEMORY, 4, 1), "simple");
    hints_default(&hints);
    hints.writers = 2;
    CHECK(!may(1, 1000, 20, 4 << 20, STORE_IN_MEMORY, 4, 1), "two writers");
}

int main(void)
{
    what_meets_in_the_file_is_one_run();
    few_pieces_are_counted_and_many_are_estimated();
    runs_in_clusters_are_close();
    a_third_of_close_ones_is_enough();
    the_middle_is_looked_at_too();
    runs_far_apart_are_moved_by_their_rank();
    runs_that_turn_out_to_lie_far_apart_are_as_well();
    few_runs_are_as_one();
    who_asks_for_a_way_gets_it();
    return failures != 0;
}
