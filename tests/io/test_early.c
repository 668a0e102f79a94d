/* Who wrote what before the ranks met: compared with every pair of ranks. */
#include "move/early.h"

#include <string.h>

#include "../claim.h"

static uint64_t state = 7;

static uint64_t below(uint64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
}

static int meet(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    return a < b && c < d && a < d && c < b;
}

static struct early_claim some_claim(uint64_t span, uint64_t longest, uint64_t block)
{
    struct early_claim c = {0};
    if (below(5) == 0)
        return c;
    c.low = below(span);
    c.high = c.low + 1 + below(longest);
    c.from = c.low / block * block;
    c.until = (c.high + block - 1) / block * block;
    if (below(6) == 0) /* a stream elsewhere */
        c.from = below(c.from + 1) / block * block;
    return c;
}

static void the_judge_finds_what_every_pair_shows(void)
{
    static unsigned char shares[EARLY_MOST_RANKS];
    static struct early_claim claims[EARLY_MOST_RANKS];
    int kept = 0, shared = 0;
    for (int round = 0; round < 4000; round++) {
        uint32_t n = 1 + (uint32_t)below(round % 100 ? 12 : EARLY_MOST_RANKS);
        uint64_t longest = 1 + below(300), span = longest * (1 + below(40)) * n;
        for (uint32_t i = 0; i < n; i++)
            claims[i] = some_claim(span, longest, 64);
        int apart = 1;
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; j < i; j++)
                apart &= !meet(claims[i].low, claims[i].high, claims[j].low, claims[j].high);
        CHECK(early_judge(claims, n, shares) == apart, "round %d: %d", round, apart);
        kept += apart;
        for (uint32_t i = 0; apart && i < n; i++) {
            int with = 0;
            for (uint32_t j = 0; j < n; j++)
                with |= i != j &&
                        meet(claims[i].from, claims[i].until, claims[j].from, claims[j].until);
            CHECK(shares[i] == with, "round %d, rank %u: %d", round, i, with);
            shared += with;
        }
    }
    CHECK(kept > 400 && kept < 3600 && shared > 400, "%d kept, %d shared", kept, shared);
}

static void ranks_in_order_and_side_by_side_share_the_blocks_they_meet_in(void)
{
    unsigned char shares[3];
    struct early_claim claims[3] = {{0, 100, 0, 128}, {100, 128, 64, 128}, {128, 192, 128, 192}};
    CHECK(early_judge(claims, 3, shares), "nothing overlaps");
    CHECK(shares[0] && shares[1] && !shares[2], "%d %d %d", shares[0], shares[1], shares[2]);
    claims[1].low = 99;
    CHECK(!early_judge(claims, 3, shares), "a byte overlaps");
}

static int is_every_byte_someones(const struct early_claim *claims, uint32_t n)
{
    uint64_t low = UINT64_MAX, high = 0;
    for (uint32_t i = 0; i < n; i++)
        if (claims[i].low < claims[i].high) {
            low = claims[i].low < low ? claims[i].low : low;
            high = claims[i].high > high ? claims[i].high : high;
        }
    for (uint64_t byte = low; byte < high; byte++) {
        uint32_t i = 0;
        while (i < n && !(claims[i].low <= byte && byte < claims[i].high))
            i++;
        if (i == n)
            return 0;
    }
    return low < high;
}

static void bytes_are_dense_where_each_of_their_hull_is_someones(void)
{
    struct early_claim claims[6];
    int dense = 0, apart = 0;
    for (int round = 0; round < 4000; round++) {
        uint32_t n = 1 + (uint32_t)below(6);
        uint64_t at = below(100);
        for (uint32_t k = 0; k < n; k++) { /* in an order of their own */
            struct early_claim *c = &claims[round % 2 ? k : n - 1 - k];
            *c = (struct early_claim){0};
            if (below(5) == 0)
                continue;
            at += below(12) == 0;
            c->low = at;
            at = c->high = at + 1 + below(9);
        }
        int wanted = is_every_byte_someones(claims, n);
        CHECK(early_is_dense(claims, n) == wanted, "round %d: %d", round, wanted);
        dense += wanted;
        apart += !wanted;
    }
    CHECK(dense > 1000 && apart > 400, "%d dense, %d apart", dense, apart);
}

static void a_request_is_a_run_if_it_lies_together_on_both_sides(void)
{
    char memory[64] = "";
    struct io_request request;
    struct io_part run;
    struct brg_error err;
    brg_piece pieces[2] = {{10, 20}, {30, 5}};
    uint64_t shape[2] = {4, 8}, start[2] = {1, 0}, count[2] = {2, 8};
    int64_t apart[2] = {9, 1};
    CHECK(!request_of_pieces(&request, pieces, 1, memory, &err), "%s", err.text);
    CHECK(request_run(&request, &run) && run.offset == 10 && run.bytes == 20 &&
              run.memory == memory,
          "one piece");
    request_destroy(&request);
    CHECK(!request_of_block(&request, 100, 1, 2, shape, start, count, NULL, memory, &err), "%s",
          err.text);
    CHECK(request_run(&request, &run) && run.offset == 108 && run.bytes == 16, "whole rows");
    request_destroy(&request);
    CHECK(!request_of_block(&request, 100, 1, 2, shape, start, count, apart, memory, &err), "%s",
          err.text);
    CHECK(!request_run(&request, &run), "rows that lie apart in memory");
    request_destroy(&request);
    request_none(&request);
    CHECK(!request_run(&request, &run), "nothing");
}

int main(void)
{
    the_judge_finds_what_every_pair_shows();
    ranks_in_order_and_side_by_side_share_the_blocks_they_meet_in();
    bytes_are_dense_where_each_of_their_hull_is_someones();
    a_request_is_a_run_if_it_lies_together_on_both_sides();
    return failures != 0;
}
