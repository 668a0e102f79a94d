/* How a request's runs lie, and which of them a rank moves by itself. */
#include "move/plan_own.h"
#include "move/request.h"

#include "../claim.h"

enum {
    MOST = 4000
};

static char memory[MOST * 100];
static struct brg_error err;

static struct request_spread spread_of_pieces(const brg_piece *pieces, size_t n)
{
    struct io_request request;
    CHECK(!request_of_pieces(&request, pieces, n, memory, &err), "%s", err.text);
    struct request_spread s = request_spread(&request);
    request_destroy(&request);
    return s;
}

/* `n` pieces of `bytes`, each `apart` behind the one before; behind every `group` of them (0: none)
 * comes so much more. */
static struct request_spread spread_of(size_t n, uint64_t bytes, uint64_t apart, size_t group,
                                       uint64_t more)
{
    static brg_piece pieces[MOST];
    uint64_t offset = 77;
    for (size_t i = 0; i < n; i++) {
        pieces[i] = (brg_piece){.offset = offset, .bytes = bytes};
        offset += apart + (group && i % group == group - 1 ? more : 0);
    }
    return spread_of_pieces(pieces, n);
}

static int is(struct request_spread s, uint64_t stretches, uint64_t runs, uint64_t run,
              uint64_t length, uint64_t pitch)
{
    int same = s.stretches == stretches && s.runs == runs && s.run == run && s.length == length &&
               s.pitch == pitch;
    if (!same)
        printf("%llu stretches of %llu bytes by %llu, %llu runs of %llu\n",
               (unsigned long long)s.stretches, (unsigned long long)s.length,
               (unsigned long long)s.pitch, (unsigned long long)s.runs, (unsigned long long)s.run);
    return same;
}

static void what_meets_in_the_file_is_one_run(void)
{
    struct io_request nothing;
    CHECK(is(spread_of(100, 20, 20, 0, 0), 1, 1, 2000, 2000, 2000), "all together");
    CHECK(is(spread_of(12, 20, 20, 4, 10000), 3, 3, 80, 80, 10080), "three runs of four pieces");
    request_none(&nothing);
    CHECK(is(request_spread(&nothing), 0, 0, 0, 0, 0), "nothing");
}

static void runs_with_small_gaps_are_one_stretch(void)
{
    CHECK(is(spread_of(50, 80, 800, 5, 1 << 20), 10, 50, 80, 3280, 4000 + (1 << 20)), "clusters");
    CHECK(is(spread_of(50, 80, 4176, 0, 0), 1, 50, 80, 49 * 4176 + 80, 49 * 4176 + 80), "4 KiB");
    CHECK(is(spread_of(50, 80, 4177, 0, 0), 50, 50, 80, 80, 4177), "more than that");
}

static void few_pieces_are_counted_and_many_are_estimated(void)
{
    CHECK(is(spread_of(5, 8, 8192, 0, 0), 5, 5, 8, 8, 8192), "five");
    CHECK(is(spread_of(3000, 8, 8192, 0, 0), 3000, 3000, 8, 8, 8192), "three thousand");
    CHECK(is(spread_of(3000, 8, 8, 4, 8192), 750, 750, 32, 32, 8224), "of four pieces each");
}

/* One of three stretches begins close behind the one before. */
static void a_third_of_close_ones_is_enough(void)
{
    brg_piece pieces[30];
    for (size_t i = 0; i < 30; i++)
        pieces[i] = (brg_piece){.offset = (i << 16) - (i % 3 == 2) * 60000, .bytes = 8};
    CHECK(spread_of_pieces(pieces, 30).pitch == 5536, "%llu",
          (unsigned long long)spread_of_pieces(pieces, 30).pitch);
}

static void the_middle_is_looked_at_too(void)
{
    static brg_piece pieces[MOST];
    for (size_t i = 0; i < MOST; i++)
        pieces[i] = (brg_piece){.offset = i < 70 ? i << 16 : (70 << 16) + i * 5000, .bytes = 8};
    CHECK(spread_of_pieces(pieces, MOST).pitch == 5000, "%llu",
          (unsigned long long)spread_of_pieces(pieces, MOST).pitch);
}

/* ---- the rule ---- */

static struct io_hints hints;
static struct plan_place place = {.stripe_bytes = 1 << 20};

/* Runs of 20 bytes, each a stretch. */
static struct plan_share share_of(int writes, uint64_t runs, uint64_t pitch, enum store_where where)
{
    return (struct plan_share){
        .writes = writes,
        .spread = {.stretches = runs, .runs = runs, .run = 20, .length = 20, .pitch = pitch},
        .where = where};
}

static int may(const struct plan_share *share, uint32_t size, uint32_t nodes)
{
    struct plan_ranks ranks = {.size = size, .n_nodes = nodes, .room_bytes = 8 << 20};
    return plan_may_early(&hints, &place, share, &ranks);
}

static int may_read(uint64_t pitch, enum store_where where, uint32_t size, uint32_t nodes)
{
    struct plan_share share = share_of(0, 1000, pitch, where);
    return may(&share, size, nodes);
}

static int may_write(uint64_t pitch, uint32_t nodes)
{
    struct plan_share share = share_of(1, 1000, pitch, STORE_UNKNOWN);
    return may(&share, 4, nodes);
}

static void runs_far_apart_are_moved_by_their_rank(void)
{
    hints_default(&hints);
    CHECK(may_read(4 * 4096, STORE_IN_MEMORY, 4, 1), "read from memory");
    CHECK(!may_read(4 * 4096 - 4, STORE_IN_MEMORY, 4, 1), "closer");
    CHECK(!may_read(4 * 4096, STORE_IN_MEMORY, 8, 1), "others lie between");
    CHECK(!may_read(4 * 4096, STORE_ON_DISK, 4, 1), "a disk reads on by itself");
    CHECK(!may_read(4 << 20, STORE_ON_DISK, 4, 1), "how, the others' wants decide");
    CHECK(!may_read(4 << 14, STORE_UNKNOWN, 4, 1), "over a network");
    CHECK(may_read(4 << 16, STORE_UNKNOWN, 4, 4), "not so far, on any number of nodes");
    CHECK(may_write(4 * 4116, 1), "written");
    CHECK(!may_write(4 * 4115, 1), "holes that are filled");
    CHECK(!may_write(1 << 20, 4), "nodes that write side by side");
    struct plan_share page = share_of(1, 1000, 4 * 4096, STORE_IN_MEMORY);
    CHECK(may(&page, 4, 1), "one in each page");
    page.spread.run = page.spread.length = 1025;
    CHECK(!may(&page, 4, 1), "much of each page");
    struct plan_share longer = share_of(1, 1000, 64 << 10, STORE_ON_DISK);
    longer.spread.run = longer.spread.length = 16 << 10;
    CHECK(may(&longer, 4, 1), "too long to be copied");
}

static void what_lies_within_a_stretch_is_read_as_well_and_written_run_by_run(void)
{
    struct plan_share read = share_of(0, 5000, 4 * (4096 + 900), STORE_IN_MEMORY), write = read;
    hints_default(&hints);
    read.spread.stretches = 1000;
    read.spread.length = 1000;
    CHECK(may(&read, 4, 1), "900 bytes that nobody wants");
    read.spread.pitch -= 4;
    CHECK(!may(&read, 4, 1), "closer");
    write.writes = 1;
    write.spread.pitch = 1 << 20;
    write.spread.runs = 4000;
    write.spread.stretches = 1000;
    CHECK(may(&write, 4, 1), "four runs a stretch");
    write.spread.runs = 4001;
    CHECK(!may(&write, 4, 1), "more");
}

static void few_runs_are_as_one(void)
{
    struct plan_share read = share_of(0, 16, 100, STORE_IN_MEMORY), write;
    hints_default(&hints);
    CHECK(may(&read, 16, 1), "read");
    CHECK(!may(&read, 17, 1), "by many ranks");
    CHECK(!may(&read, 4, 2), "on several nodes");
    read.where = STORE_ON_DISK;
    CHECK(!may(&read, 4, 1), "which wait");
    read = share_of(0, 17, 100, STORE_IN_MEMORY);
    CHECK(!may(&read, 4, 1), "more");
    read.spread.stretches = 1;
    read.spread.length = 340 + (64 << 10);
    CHECK(may(&read, 4, 1), "in one stretch");
    read.spread.length++;
    CHECK(!may(&read, 4, 1), "of too much that nobody wants");
    write = share_of(1, 2, 100, STORE_IN_MEMORY);
    CHECK(may(&write, 4, 1) && !may(&write, 17, 1), "written");
    write = share_of(1, 3, 100, STORE_IN_MEMORY);
    CHECK(!may(&write, 4, 1), "more");
}

/* When it is known how far all reach: 8 ranks, 64 runs each. */
static int scattered(int writes, uint64_t runs, uint64_t pitch, uint64_t reach,
                     enum store_where where)
{
    struct plan_share share = share_of(writes, runs, pitch, where);
    struct plan_ranks ranks = {.size = 8, .n_nodes = 1, .room_bytes = 8 << 20};
    struct io_extent extent = {.low = 1000, .high = 1000 + reach, .run = 20};
    return plan_is_scattered(&hints, &extent, &share, &ranks);
}

static void runs_that_turn_out_to_lie_far_apart_are_as_well(void)
{
    uint64_t one = 64 * 8192; /* what a rank reaches */
    hints_default(&hints);
    CHECK(scattered(0, 64, 8192, 8 * one, STORE_IN_MEMORY), "side by side");
    CHECK(!may_read(8192, STORE_IN_MEMORY, 8, 1), "which no rank knows before");
    CHECK(!scattered(0, 64, 8192, 3 * one, STORE_IN_MEMORY), "they lie in each other");
    CHECK(!scattered(0, 64, 4000, 8 * one, STORE_IN_MEMORY), "one rank's lie close");
    CHECK(!scattered(0, 64, 8192, 8 * one, STORE_ON_DISK), "a disk reads on by itself");
    CHECK(scattered(0, 64, 16384, 16 * one, STORE_ON_DISK), "not so far");
    CHECK(scattered(1, 64, 8192, 8 * one, STORE_ON_DISK), "written");
    CHECK(!scattered(0, 1, 8192, 8 * one, STORE_IN_MEMORY), "one run each");
    CHECK(!scattered(0, 64, 8192, 0, STORE_IN_MEMORY), "past the end");
    hints.writers = 1;
    CHECK(!scattered(0, 64, 8192, 8 * one, STORE_IN_MEMORY), "one writer");
}

/* 8 ranks, 64 runs of 20,000 bytes each, by `pitch` from one of any rank to the next. */
static int reads_on(uint64_t pitch, enum store_where where)
{
    struct plan_share share = share_of(0, 64, 8 * pitch, where);
    struct io_extent extent = {.low = 777, .high = 777 + 64 * 8 * pitch, .run = 20000};
    struct plan_ranks ranks = {.size = 8, .n_nodes = 1, .room_bytes = 8 << 20};
    share.spread.run = share.spread.length = 20000;
    return plan_reads_on(&extent, &share, &ranks);
}

static void of_what_is_mostly_wanted_a_disk_reads_on(void)
{
    CHECK(reads_on(20000, STORE_ON_DISK), "all");
    CHECK(reads_on(26666, STORE_ON_DISK), "three quarters");
    CHECK(!reads_on(26668, STORE_ON_DISK), "less");
    CHECK(!reads_on(20000, STORE_UNKNOWN), "over a network each read would wait");
    CHECK(!reads_on(20000, STORE_IN_MEMORY), "nothing is read");
}

static int may_look(uint64_t runs, uint64_t pitch, uint32_t nodes)
{
    struct plan_share share = share_of(0, runs, pitch, STORE_UNKNOWN);
    struct plan_ranks ranks = {.size = 20, .n_nodes = nodes, .room_bytes = 8 << 20};
    return plan_may_look(&hints, &place, &share, &ranks);
}

static void nobody_looks_where_it_would_change_nothing(void)
{
    hints_default(&hints);
    CHECK(may_look(100, 4096, 1), "it may be in memory, and nobody lie between");
    CHECK(!may_look(100, 4092, 1), "closer");
    CHECK(!may_look(1, 4096, 1), "one run");
    CHECK(!may_look(100, 4096, 2), "what nodes share");
    hints.transport = IO_SIMPLE;
    CHECK(!may_look(100, 4096, 1), "a way that was asked for");
}

/* ---- a disk that is read in one stream ---- */

static struct plan_share run_of(uint64_t bytes, enum store_where where)
{
    return (struct plan_share){
        .spread = {.stretches = 1, .runs = 1, .run = bytes, .length = bytes, .pitch = bytes},
        .where = where};
}

static int looks_at(uint64_t bytes, int writes, uint32_t size, uint32_t nodes)
{
    struct plan_share share = run_of(bytes, STORE_UNKNOWN);
    struct plan_ranks ranks = {.size = size, .n_nodes = nodes, .room_bytes = 8 << 20};
    share.writes = writes;
    return plan_may_look(&hints, &place, &share, &ranks);
}

static void there_one_run_is_looked_at_too(void)
{
    hints_default(&hints);
    CHECK(!looks_at(1 << 20, 0, 4, 1), "not of other disks");
    place.one_stream = 1;
    CHECK(looks_at(256 << 10, 0, 4, 1), "read");
    CHECK(!looks_at((256 << 10) - 1, 0, 4, 1), "little is read as soon");
    CHECK(!looks_at(1 << 20, 1, 4, 1), "written");
    CHECK(!looks_at(1 << 20, 0, 1, 1), "by one rank");
    CHECK(!looks_at(1 << 20, 0, 4, 2), "which nodes share");
    hints.writers = 1;
    CHECK(!looks_at(1 << 20, 0, 4, 1), "writers that were asked for");
    place.one_stream = 0;
}

static void there_nobody_begins_before_all_have_met(void)
{
    struct plan_share disk = run_of(1 << 20, STORE_ON_DISK), there = disk;
    there.where = STORE_IN_MEMORY;
    hints_default(&hints);
    CHECK(may(&disk, 4, 1), "elsewhere each reads its own");
    place.one_stream = 1;
    CHECK(!may(&disk, 4, 1) && may(&there, 4, 1), "what is in memory is copied at once");
    CHECK(may(&disk, 4, 2) && may(&disk, 1, 1), "not of several nodes, nor of one rank");
    disk.spread.runs = disk.spread.stretches = 8;
    CHECK(!may(&disk, 4, 1), "several runs");
    place.one_stream = 0;
}

/* 4 ranks that want so much each, of an extent of `bytes`. */
static uint32_t readers(uint64_t each, uint64_t bytes, enum store_where where)
{
    struct plan_share share = run_of(each, where);
    struct plan_ranks ranks = {.size = 4, .n_nodes = 1, .room_bytes = 8 << 20};
    struct io_extent extent = {.low = 5, .high = 5 + bytes, .run = each};
    return plan_readers(&hints, &place, &extent, &share, &ranks);
}

static void there_few_ranks_read_what_is_mostly_wanted(void)
{
    hints_default(&hints);
    CHECK(readers(1 << 20, 4 << 20, STORE_ON_DISK) == 0, "not of other disks");
    place.one_stream = 1;
    CHECK(readers(1 << 20, 4 << 20, STORE_ON_DISK) == 1, "all of it");
    CHECK(readers(3 << 20, 16 << 20, STORE_ON_DISK) == 1, "three quarters");
    CHECK(readers(3 << 20, (16 << 20) + 4, STORE_ON_DISK) == 0, "less");
    CHECK(readers(1 << 20, 4 << 20, STORE_IN_MEMORY) == 0, "there already");
    CHECK(readers(5 << 20, (16 << 20) + 1, STORE_ON_DISK) == 2, "more");
    CHECK(readers(16 << 20, 64 << 20, STORE_ON_DISK) == 2, "much");
    CHECK(readers(17 << 20, (64 << 20) + 1, STORE_ON_DISK) == 0, "all copy faster than two");
    hints.transport = IO_DIRECT;
    CHECK(readers(1 << 20, 4 << 20, STORE_ON_DISK) == 0, "a way that was asked for");
    place.one_stream = 0;
}

static void who_asks_for_a_way_gets_it(void)
{
    hints_default(&hints);
    hints.transport = IO_SIMPLE;
    CHECK(!may_read(4 << 20, STORE_IN_MEMORY, 4, 1), "simple");
    hints_default(&hints);
    hints.writers = 2;
    CHECK(!may_write(4 << 20, 1), "two writers");
}

int main(void)
{
    what_meets_in_the_file_is_one_run();
    runs_with_small_gaps_are_one_stretch();
    few_pieces_are_counted_and_many_are_estimated();
    a_third_of_close_ones_is_enough();
    the_middle_is_looked_at_too();
    runs_far_apart_are_moved_by_their_rank();
    what_lies_within_a_stretch_is_read_as_well_and_written_run_by_run();
    few_runs_are_as_one();
    runs_that_turn_out_to_lie_far_apart_are_as_well();
    of_what_is_mostly_wanted_a_disk_reads_on();
    nobody_looks_where_it_would_change_nothing();
    there_one_run_is_looked_at_too();
    there_nobody_begins_before_all_have_met();
    there_few_ranks_read_what_is_mostly_wanted();
    who_asks_for_a_way_gets_it();
    return failures != 0;
}
