/* The page of checksums where the ranks of a file are on several nodes. */
#include <unistd.h>

#include "store/store_inside.h"
#include "store/store_io.h"
#include "store/sums_page.h"

_Static_assert(STORE_PAGE_VALUES == SUMS_PAGE_VALUES, "what a page says");

static uint32_t n_blocks(const struct io_store *s, uint64_t size)
{
    uint64_t n = store_n_blocks(&s->token, size);
    return (uint32_t)(n < SUMS_IN_MEMORY ? n : SUMS_IN_MEMORY);
}

int store_has_page(const struct io_store *s)
{
    return s->page != NULL;
}

uint64_t store_page_unsummed(const struct io_store *s, uint64_t size)
{
    uint64_t bytes = 0;
    if (!s->page || s->page[SUMS_PAGE_FILE])
        return size;
    for (uint32_t b = 0; b < n_blocks(s, size); b++)
        bytes += s->page[sums_mark_at(b)] ? s->token.block_bytes : 0;
    return bytes;
}

int store_page_say(const struct io_store *s, uint64_t size, int64_t *values)
{
    return sums_page_say(s->page, n_blocks(s, size), values);
}

int store_page_hear(struct io_store *s, uint64_t size, const int64_t *values)
{
    return sums_page_hear(s->page, n_blocks(s, size), values);
}

int store_page_leave(struct io_store *s, uint64_t size, struct brg_error *err)
{
    char *page = s->page;
    struct sums_pad pad;
    s->page = NULL;
    if (s->rank != 0)
        return 0;
    sums_pad_open(&pad, NULL, s->working);
    int rc = sums_pad_make(&pad);
    uint32_t sheets = (n_blocks(s, size) + SUMS_GROUP - 1) / SUMS_GROUP;
    rc = rc ? rc : store_io_write(pad.fd, page, sheets * SUMS_SHEET, 0, NULL);
    sums_pad_close(&pad);
    return rc ? store_failed(err, rc, s->token.path, -1, "keep checksums of") : 0;
}
