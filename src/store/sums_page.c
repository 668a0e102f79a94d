/* See sums_page.h. */
#include "store/sums_page.h"

#include <string.h>

/* Of a block: its sum and its complement, so that the least of both are equal (but for that) only
 * if all sums are. Where a sum looks like one of these words, its block is read back. */
#define NOTHING INT64_MAX
#define MARKED INT64_MIN

int sums_page_say(const char *page, uint32_t n, int64_t *values)
{
    for (uint32_t b = 0; b < n; b++) {
        int64_t sum;
        int marked = page[sums_mark_at(b)];
        memcpy(&sum, page + sums_at(b), sizeof sum);
        values[2 * b] = marked ? MARKED : sum == 0 ? NOTHING : sum;
        values[2 * b + 1] = marked ? MARKED : sum == 0 ? NOTHING : ~sum;
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
        memcpy(page + sums_at(b), &sum, sizeof sum);
        page[sums_mark_at(b)] = (char)marked;
        unsummed |= marked;
    }
    page[SUMS_PAGE_FILE] = values[2 * n] == 0;
    page[SUMS_PAGE_MORE] = page[SUMS_PAGE_MORE] || n > SUMS_GROUP;
    return unsummed;
}
