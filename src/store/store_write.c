/* See store.h: bytes into a file, or into this rank's part of it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/error.h"
#include "store/store_inside.h"
#include "store/store_io.h"
#include "world/fault.h"

#define SHORT_BYTES (64u << 10)
#define CACHED_BYTES (1u << 20)

static int need_part(struct io_store *s, struct brg_error *err)
{
    char folder[STORE_NAME_BYTES];
    if (s->part)
        return 0;
    s->part = aligned_alloc(_Alignof(struct parts_writer), sizeof *s->part);
    if (!s->part)
        return brg_error_set(err, -ENOMEM, "no memory for a part");
    store_parts_folder(folder, s->token.base);
    int rc =
        parts_writer_open(s->part, folder, s->rank, (unsigned)s->token.mode, s->token.stripe_bytes);
    rc = rc ? rc : store_give(s->part->data, &s->token);
    return rc ? store_failed(err, rc, s->token.path, -1, "create a part of") : 0;
}

static int write_part(struct io_store *s, const void *buf, size_t bytes, uint64_t offset,
                      struct brg_error *err)
{
    uint64_t failed = offset, call = atomic_load(&s->call);
    int rc = need_part(s, err);
    if (rc)
        return rc;
    io_fault_step();
    store_reserve(s, s->part->data, bytes, s->part->at);
    while (!rc && bytes) { /* what has just been written is summed while it is in the cache */
        size_t n = bytes < CACHED_BYTES ? bytes : CACHED_BYTES;
        rc = parts_writer_put(s->part, buf, n, offset, call, &failed);
        buf = (const char *)buf + n;
        offset += n;
        bytes -= n;
    }
    return rc ? store_failed(err, rc, s->token.path, (int64_t)failed, "write") : 0;
}

/* Asking for the limit takes as long as a short write. In place, where it would end a program that
 * sets one later than it opens a file, MPI ends it as well. One that raises it is believed. */
static int write_file(struct io_store *s, const char *buf, size_t bytes, uint64_t offset,
                      struct brg_error *err)
{
    size_t done = 0;
    int known = store_in_place(&s->token) && bytes < SHORT_BYTES && offset <= s->limit &&
                bytes <= s->limit - offset;
    uint64_t limit = known ? s->limit : store_io_limit();
    int rc = store_io_write_below(limit, s->fd, buf, bytes, offset, &done);
    return rc ? store_failed(err, rc, s->token.path, (int64_t)(offset + done), "write") : 0;
}

/* What of it goes past the page cache: its beginning up to a page, and the end after the last one,
 * never do. Returns the first byte that is still to be written, from `at` on. */
static size_t write_direct(struct io_store *s, const char *buf, size_t bytes, uint64_t offset,
                           size_t at)
{
    if (bytes < DIRECT_LEAST || !store_io_plain())
        return at;
    if (!s->direct && direct_open(&s->direct, s->token.temporary, s->memory / 4, s->uring)) {
        s->direct = NULL;
        s->direct_io = 0; /* this file system has none */
        return at;
    }
    return at + direct_write(s->direct, buf + at, bytes - at, offset + at);
}

static int write_past_cache(struct io_store *s, const char *buf, size_t bytes, uint64_t offset,
                            struct brg_error *err)
{
    size_t head = (size_t)(-offset % DIRECT_ALIGN);
    head = head < bytes ? head : bytes;
    int rc = s->sums ? sums_note(s->sums, buf, bytes, offset) : 0;
    rc = rc ? store_failed(err, rc, s->token.path, (int64_t)offset, "write the checksums of")
            : write_file(s, buf, head, offset, err);
    if (rc)
        return rc;
    size_t at = write_direct(s, buf, bytes, offset, head);
    return write_file(s, buf + at, bytes - at, offset + at, err);
}

/* What was written starts on its way to the disk: ranks sync only when all have written, and would
 * find everything still to do. What fails there, the sync says. */
static void start_sync(struct io_store *s, size_t bytes, uint64_t offset)
{
    int syncs = store_in_place(&s->token) ? store_will_sync() : s->sync && !s->async;
    if (syncs && bytes >= STORE_START_BYTES)
        (void)sync_file_range(s->fd, (off_t)offset, (off_t)bytes, SYNC_FILE_RANGE_WRITE);
}

void store_start(struct io_store *s, uint64_t from, uint64_t until)
{
    start_sync(s, (size_t)(until - from), from);
}

/* In place there are no sums, and nothing wants blocks but a sync that is to come. */
static uint64_t step_of(const struct io_store *s)
{
    if (store_in_place(&s->token) && !store_will_sync())
        return UINT64_MAX;
    return s->token.block_bytes < CACHED_BYTES ? CACHED_BYTES : s->token.block_bytes;
}

/* Block by block, or several small ones: what has just been summed is still in the processor's
 * cache when it is written, so that sums cost no second way through memory. */
static int write_blocks(struct io_store *s, const char *buf, size_t bytes, uint64_t offset,
                        struct brg_error *err)
{
    uint64_t step = step_of(s);
    int rc = 0;
    while (!rc && bytes) {
        uint64_t left = step - offset % step;
        size_t n = bytes < left ? bytes : (size_t)left;
        if (s->sums && s->early.bytes)
            sums_note_early(s->sums, buf, n, offset);
        else
            rc = s->sums ? sums_note(s->sums, buf, n, offset) : 0;
        rc = rc ? store_failed(err, rc, s->token.path, (int64_t)offset, "write the checksums of")
                : write_file(s, buf, n, offset, err);
        if (!rc)
            start_sync(s, n, offset);
        buf += n;
        offset += n;
        bytes -= n;
    }
    return rc;
}

int store_write(struct io_store *s, const void *buf, size_t bytes, uint64_t offset,
                struct brg_error *err)
{
    if (s->token.layout == IO_PARTS)
        return write_part(s, buf, bytes, offset, err);
    int rc = store_need_file(s, err);
    rc = rc ? rc : store_need_sums(s, err);
    if (rc)
        return rc;
    s->written = !store_in_place(&s->token);
    io_fault_step();
    if (s->direct_io)
        return write_past_cache(s, buf, bytes, offset, err);
    store_reserve(s, s->fd, bytes, offset);
    if (store_in_place(&s->token))
        atomic_fetch_add_explicit(&s->unsynced, bytes, memory_order_relaxed);
    return write_blocks(s, buf, bytes, offset, err);
}
