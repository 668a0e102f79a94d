/* Pages of several nodes become one that says nothing false of any block. */
#include "claim.h"
#include "store/sums_page.h"

#include <stdlib.h>
#include <string.h>

enum {
    NODES = 4,
    BLOCKS = SUMS_IN_MEMORY
};

static char pages[NODES][SUMS_PAGE];
static int64_t values[NODES][SUMS_PAGE_VALUES];

static uint64_t sum_of(const char *page, uint32_t block)
{
    uint64_t sum;
    memcpy(&sum, page + sums_at(block), sizeof sum);
    return sum;
}

static void put(int node, uint32_t block, uint64_t sum, int mark)
{
    memcpy(pages[node] + sums_at(block), &sum, sizeof sum);
    pages[node][sums_mark_at(block)] = (char)mark;
}

/* Whether some block must be read back, as all nodes hear. */
static int joined(uint32_t n)
{
    int64_t least[SUMS_PAGE_VALUES];
    int unsummed = 0;
    for (int node = 0; node < NODES; node++) {
        int said = sums_page_say(pages[node], n, values[node]);
        CHECK(said == 2 * (int)n + 1, "%d values of %u blocks", said, n);
        for (int i = 0; i < said; i++)
            least[i] = !node || values[node][i] < least[i] ? values[node][i] : least[i];
    }
    for (int node = 0; node < NODES; node++) {
        int heard = sums_page_hear(pages[node], n, least);
        CHECK(!node || heard == unsummed, "node %d hears something else", node);
        unsummed = heard;
    }
    return unsummed;
}

static void clear(void)
{
    memset(pages, 0, sizeof pages);
}

static void what_one_node_knows_all_know(void)
{
    clear();
    put(1, 0, 77, 0);
    put(2, 5, UINT64_C(1) << 63 | 5, 0); /* negative, as a word */
    put(0, 7, 9, 0);
    put(3, 7, 9, 0); /* the same bytes, written twice */
    CHECK(!joined(BLOCKS), "all sums are known");
    for (int node = 0; node < NODES; node++) {
        CHECK(sum_of(pages[node], 0) == 77 && sum_of(pages[node], 7) == 9, "node %d", node);
        CHECK(sum_of(pages[node], 5) == (UINT64_C(1) << 63 | 5), "node %d: %llx", node,
              (unsigned long long)sum_of(pages[node], 5));
        CHECK(sum_of(pages[node], 1) == 0, "nobody wrote it");
    }
}

static int marked(uint32_t block)
{
    return pages[0][sums_mark_at(block)];
}

static void what_they_do_not_agree_on_is_read_back(void)
{
    clear();
    put(1, 3, 77, 0);
    put(2, 3, 78, 0); /* who was the last? */
    put(0, 4, 77, 0);
    put(3, 4, 0, 1); /* wrote a part of it */
    put(1, 6, 5, 0);
    CHECK(joined(BLOCKS), "two blocks are to be read back");
    CHECK(marked(3) && marked(4) && !marked(6) && !marked(0), "these two");
}

/* Words that mean something else between nodes may be sums, too. */
static void any_sum_is_kept_or_read_back(void)
{
    static const uint64_t sums[] = {1, UINT64_MAX, INT64_MAX, UINT64_C(1) << 63, 2, 42};
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        clear();
        put(2, 9, sums[i], 0);
        int unsummed = joined(10);
        CHECK(unsummed == marked(9), "sum %zu", i);
        CHECK(marked(9) || sum_of(pages[0], 9) == sums[i], "sum %zu is %llx", i,
              (unsigned long long)sum_of(pages[0], 9));
    }
}

static void that_there_is_a_file_is_told(void)
{
    clear();
    joined(1);
    CHECK(!pages[0][SUMS_PAGE_FILE], "there is none");
    pages[3][SUMS_PAGE_FILE] = 1;
    joined(0);
    CHECK(pages[0][SUMS_PAGE_FILE] && pages[3][SUMS_PAGE_FILE], "node 3 made one");
}

/* Against what each block would say if asked one by one. */
static void random_pages(unsigned seed)
{
    uint64_t known[BLOCKS];
    char doubt[BLOCKS];
    srandom(seed);
    clear();
    memset(known, 0, sizeof known);
    memset(doubt, 0, sizeof doubt);
    for (int i = 0; i < 600; i++) {
        int node = (int)(random() % NODES), mark = random() % 8 == 0;
        uint32_t block = (uint32_t)(random() % BLOCKS);
        uint64_t sum = 1 + (uint64_t)(random() % 3) * 0x5555555555555555u;
        if (sum_of(pages[node], block))
            continue;
        doubt[block] |= (char)(mark || (known[block] && known[block] != sum));
        known[block] = sum;
        put(node, block, sum, mark);
    }
    joined(BLOCKS);
    for (uint32_t b = 0; b < BLOCKS; b++) {
        CHECK(marked(b) == doubt[b], "seed %u, block %u: marked %d", seed, b, marked(b));
        CHECK(marked(b) || sum_of(pages[0], b) == known[b], "seed %u, block %u", seed, b);
    }
}

int main(void)
{
    what_one_node_knows_all_know();
    what_they_do_not_agree_on_is_read_back();
    any_sum_is_kept_or_read_back();
    that_there_is_a_file_is_told();
    for (unsigned seed = 1; seed <= 200; seed++)
        random_pages(seed);
    return failures != 0;
}
