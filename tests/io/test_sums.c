/* Checksums of blocks that are written piece by piece, behind the program's back: nothing of what
 * one rank wrote whole is read back, and all that it did not. */
#include "claim.h"
#include "store/sums.h"

#include <errno.h>
#include <string.h>

enum {
    BLOCK = 4096,
    PIECE = 512,
    NO_FILE = -1 /* reading back fails */
};

static char page[SUMS_PAGE], bytes[2 * BLOCK + PIECE];

static void opened(struct sums *s)
{
    sums_open(s, page, "/nowhere/at/all", BLOCK);
    s->through = 1;
}

static void note(struct sums *s, uint64_t from, uint64_t until)
{
    for (; from < until; from += PIECE)
        CHECK(sums_note(s, bytes + from, PIECE, from) == 0, "at %llu", (unsigned long long)from);
}

/* 0, or what reading the block back says. */
static int settled(struct sums *s, uint64_t block)
{
    uint64_t failed;
    return sums_settle(s, NO_FILE, sizeof bytes, block, block + 1, &failed);
}

static uint64_t sum_of_block(struct sums *s, uint64_t block)
{
    uint64_t sum = 0;
    CHECK(sums_get(s, block, 1, &sum) == 0, "no sum");
    return sum;
}

static void pieces_make_a_whole(void)
{
    struct sums s;
    memset(page, 0, sizeof page);
    opened(&s);
    note(&s, 0, sizeof bytes);
    CHECK(sums_flush(&s) == 0, "flush");
    for (uint64_t b = 0; b < 2; b++) {
        CHECK(settled(&s, b) == 0, "block %llu is read back", (unsigned long long)b);
        CHECK(sum_of_block(&s, b) == XXH3_64bits(bytes + b * BLOCK, BLOCK), "another sum");
    }
    CHECK(settled(&s, 2) == -EBADF, "a block that is not whole is not read back");
    sums_close(&s);
}

static void what_another_writes_between_is_read_back(void)
{
    struct sums one, other;
    memset(page, 0, sizeof page);
    opened(&one);
    opened(&other);
    note(&one, 0, 4 * PIECE);
    note(&other, PIECE, 2 * PIECE);
    note(&one, 4 * PIECE, BLOCK);
    CHECK(sums_flush(&one) == 0 && sums_flush(&other) == 0, "flush");
    CHECK(settled(&one, 0) == -EBADF, "what two ranks wrote has a sum from one");
    sums_close(&one);
    sums_close(&other);
}

static void what_comes_out_of_order_is_read_back(void)
{
    struct sums s;
    memset(page, 0, sizeof page);
    opened(&s);
    note(&s, 0, 4 * PIECE);
    note(&s, 6 * PIECE, BLOCK);
    note(&s, 4 * PIECE, 6 * PIECE);
    CHECK(sums_flush(&s) == 0, "flush");
    CHECK(settled(&s, 0) == -EBADF, "it is not read back");
    sums_close(&s);
}

int main(void)
{
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 31 + i / BLOCK);
    pieces_make_a_whole();
    what_another_writes_between_is_read_back();
    what_comes_out_of_order_is_read_back();
    return failures != 0;
}
