/* Bytes that are there before the ranks have agreed on them. */
#include "store/store_inside.h"

int store_may_early(const struct io_store *s, size_t bytes, uint64_t offset)
{
    return s->token.layout == IO_SHARED && !s->async && !s->direct_io &&
           sums_have_room(s->token.block_bytes, bytes, offset);
}

int store_write_early(struct io_store *s, const void *buf, size_t bytes, uint64_t offset,
                      struct brg_error *err)
{
    s->early = (struct store_early){.buf = buf, .bytes = bytes, .offset = offset};
    return store_write(s, buf, bytes, offset, err);
}

int store_end_early(struct io_store *s, enum store_early_end end, uint64_t size,
                    struct brg_error *err)
{
    struct store_early e = s->early;
    int rc = 0;
    s->early.bytes = 0;
    if (!s->sums)
        return 0;
    if (end == STORE_AGAIN) {
        sums_forget_early(s->sums);
        return 0;
    }
    if (end == STORE_DOUBT)
        rc = e.bytes ? sums_doubt_early(s->sums, e.bytes, e.offset) : 0;
    else
        rc = sums_keep_early(s->sums, e.buf, e.bytes, e.offset, end == STORE_SHARED);
    rc = store_sums_failed(s, rc, err);
    return rc ? rc : store_end_call(s, size, err);
}
