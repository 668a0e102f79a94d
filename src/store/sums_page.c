/* See sums_page.h. */
#include "store/sums_page.h"

#include <string.h>

/* Of a block: its sum and its complement, so that the least of both are equal (but for that) only
 * if all sums are. Where a sum looks like one of these words, its block is read back. */
#define NOTHING INT64_MAX
#define MARKED INT64_MIN

static int is_marked(const char *page, uint32_t block)
{
    return page[SUMS_GROUP * 8 + block] != 0;
}

int sums_page_say(const char *page, uint32_t n, int64_t *values)
{
    for (uint32_t b = 0; b < n; b++) {
        int64_t sum;
        memcpy(&sum, page + (size_t)b * 8, sizeof sum);
        values[2 * b] = is_marked(page, b) ? MARKED : sum == 0 ? NOTHING : sum;
        values[2 * b + 1] = is_marked(page, b) ? MARKED : sum == 0 ? NOTHING : ~sum;
    }
    values[2 * n] = page[SUMS_PAGE_FILE] ? 0 : 1;
    return 2 * (int)n + 1;
}

int sums_page_hear(char *page, uint32_t n, const int64_t *values)
{
    int unsummed = 0;
    for (uint32_t b = 0; b < n; b++) {
        int64_t sum = values[2 * b], other = values[2 * b + 1];
        int nobody = sum == NOTHING && other == NOTHING;
        int marked = !nobody && (sum == MARKED || other == MARKED || sum != ~other);
        sum = nobody ? 0 : sum;
        memcpy(page + (size_t)b * 8, &sum, sizeof sum);
        page[SUMS_GROUP * 8 + b] = (char)marked;
        unsummed |= marked;
    }
    page[SUMS_PAGE_FILE] = values[2 * n] == 0;
    return unsummed;
}
