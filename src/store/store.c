/* See store.h: bytes in and out of one file. */
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "world/area.h"
#include "world/fault.h"
#include "store/store_inside.h"
#include "store/store_io.h"

_Static_assert(STORE_PAGE == SUMS_PAGE, "the page is the pad's");
_Static_assert(STORE_PAGE == AREA_PAGE_BYTES && SUMS_SHEET == AREA_PAGE_FIRST &&
                   SUMS_PAGE_MORE == AREA_PAGE_MORE,
               "what of it is touched");

struct io_store *store_new(void)
{
    struct io_store *s = calloc(1, sizeof *s);
    if (s)
        s->fd = s->kept = s->token.lock = -1;
    return s;
}

void store_begin(struct io_store *s, const struct store_token *token, const struct io_hints *hints,
                 uint32_t rank, char *page)
{
    s->token = *token;
    s->fd = rank == 0 ? token->file : -1;
    s->is_fresh = rank == 0 && token->lock >= 0 && !store_as_it_lies(token);
    s->written = s->is_fresh && !(token->flags & BRG_CREATE);
    s->limit = store_io_limit();
    s->room.old = token->flags & BRG_CREATE && !store_in_place(token) ? 0 : token->size;
    if (rank == 0)
        s->token.file = -1;
    s->sync = hints->sync;
    s->checksums = hints->checksums && !store_in_place(token);
    s->verify = hints->verify && !(token->flags & BRG_WRITE);
    s->async = hints->async && !store_in_place(token);
    s->rank = rank;
    s->page = s->async ? NULL : page;
    store_name(s->working, token->base, ".blocks");
    s->marked = s->unsummed = !(token->flags & (BRG_CREATE | BRG_READ));
    s->direct_io = hints->direct_io == 1;
    s->uring = hints->uring != 0;
    s->memory = (size_t)hints->segment_bytes;
    if (rank != 0)
        s->token.lock = -1;
}

int store_open(const struct store_token *token, const struct io_hints *hints, uint32_t rank,
               char *page, struct io_store **store, struct brg_error *err)
{
    *store = store_new();
    if (!*store)
        return brg_error_set(err, -ENOMEM, "no memory for a file");
    store_begin(*store, token, hints, rank, page);
    return 0;
}

static void drop_sums(struct io_store *s)
{
    if (s->sums) {
        s->marked |= s->sums->marked | s->sums->stream_marked;
        sums_close(s->sums);
    }
    free(s->sums);
    s->sums = NULL;
}

void store_close(struct io_store *s)
{
    store_leave_unsynced(s);
    drop_sums(s);
    if (s->direct)
        direct_close(s->direct);
    if (s->known)
        sums_file_close(s->known);
    if (s->part)
        parts_writer_close(s->part);
    if (s->reader)
        parts_reader_close(s->reader);
    if (s->fd >= 0)
        close(s->fd);
    if (s->kept >= 0)
        close(s->kept);
    if (s->token.lock >= 0)
        close(s->token.lock);
    free(s->known);
    free(s->part);
    free(s->reader);
    free(s);
}

static int open_data(const struct io_store *s)
{
    unsigned flags = s->token.flags;
    int mode = flags & BRG_WRITE ? O_RDWR : O_RDONLY;
    if (s->is_fresh)
        return store_io_again(s->token.lock);
    if (store_in_place(&s->token) && s->kept >= 0)
        return store_open_kept(s, mode);
    if (mode == O_RDONLY && !store_in_place(&s->token))
        return store_open_same(&s->token);
    return store_io_open(s->token.temporary, mode, 0);
}

int store_need_file(struct io_store *s, struct brg_error *err)
{
    if (s->fd >= 0)
        return 0;
    unsigned flags = s->token.flags;
    int fd = open_data(s);
    if (fd == -EACCES && store_in_place(&s->token) && !(flags & BRG_READ))
        fd = store_io_open(s->token.temporary, O_WRONLY, 0); /* nobody asks to read it */
    if (fd == -ESTALE && !(flags & BRG_WRITE))
        return store_is_another(&s->token, err);
    if (fd < 0)
        return store_failed(err, fd, s->token.path, -1, "open");
    int none = -1;
    if (!__atomic_compare_exchange_n(&s->fd, &none, fd, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        close(fd); /* another thread was first */
    s->is_fresh = 0;
    return 0;
}

int store_need_sums(struct io_store *s, struct brg_error *err)
{
    if (s->sums || !s->checksums)
        return 0;
    s->sums = aligned_alloc(_Alignof(struct sums), sizeof *s->sums); /* as xxHash needs it */
    if (!s->sums)
        return brg_error_set(err, -ENOMEM, "no memory for checksums");
    sums_open(s->sums, s->page, s->working, s->token.block_bytes);
    s->sums->through = s->async;
    return 0;
}

int store_sums_failed(struct io_store *s, int rc, struct brg_error *err)
{
    int64_t at = (int64_t)(s->sums->first * s->sums->block_bytes);
    return rc ? store_failed(err, rc, s->token.path, at, "write the checksums of") : 0;
}

void store_begin_call(struct io_store *s)
{
    atomic_fetch_add(&s->call, 1);
    s->secured = 0;
}

int store_end_call(struct io_store *s, uint64_t size, struct brg_error *err)
{
    /* With async, writes of this call are still to come, and keep the order themselves. */
    if (s->async || (!s->sums && !s->part))
        return 0;
    io_fault_step();
    if (s->part) {
        uint64_t failed;
        int rc = parts_writer_end_call(s->part, &failed);
        return rc ? store_failed(err, rc, s->token.path, (int64_t)failed, "write") : 0;
    }
    return store_sums_failed(s, sums_end_call(s->sums, size), err);
}

int store_stream(const struct io_store *s, uint64_t *from, uint64_t *until)
{
    return !s->async && s->sums && sums_stream(s->sums, from, until);
}

int store_end_stream(struct io_store *s, struct brg_error *err)
{
    return s->sums ? store_sums_failed(s, sums_end_stream(s->sums), err) : 0;
}

int store_has_unsummed(const struct io_store *s)
{
    if (s->async) /* sums are the drain's, which may be writing */
        return 1;
    return s->marked || (s->sums && (s->sums->marked || s->sums->stream_marked));
}

void store_hear_unsummed(struct io_store *s, int unsummed)
{
    s->unsummed = unsummed;
}

int store_is_unsummed(const struct io_store *s)
{
    return s->unsummed;
}

int store_let_go(struct io_store *s, struct brg_error *err)
{
    s->is_fresh = 0;
    if (s->fd >= 0) {
        if (store_in_place(&s->token) || (s->written && s->sync))
            store_keep(s);
        int rc = store_io_close(s->fd);
        s->fd = -1;
        if (rc)
            return store_failed(err, rc, s->token.path, -1, "close");
    }
    drop_sums(s);
    return 0;
}

int store_flush(struct io_store *s, struct brg_error *err)
{
    /* Without async all is on the pad since the last call ended. */
    int rc = s->sums && s->async ? store_sums_failed(s, sums_flush(s->sums), err) : 0;
    io_fault_step();
    if (s->part) {
        rc = parts_writer_flush(s->part, s->sync);
        if (rc)
            return store_failed(err, rc, s->token.path, -1, "sync a part of");
    }
    if (!rc && s->sync)
        rc = store_sync(s, err);
    return rc ? rc : store_let_go(s, err);
}

int store_show(struct io_store *s, struct brg_error *err)
{
    /* The stream is forgotten here, and further calls may change its block. */
    int rc = s->sums ? store_sums_failed(s, sums_flush(s->sums), err) : 0;
    if (!rc && s->is_fresh && s->written) /* what was copied from the file that was there */
        rc = store_need_file(s, err);
    return rc ? rc : store_let_go(s, err);
}

/* Shares go to ranks spread evenly over all, so that each reads what lies near what it wrote. */
static int has_share(uint32_t rank, uint32_t n_ranks, uint64_t n_blocks, uint64_t *first,
                     uint64_t *end)
{
    uint64_t shares = n_ranks < 64 ? n_ranks : 64;
    if (shares > n_blocks)
        shares = n_blocks;
    if (!shares)
        return 0;
    uint64_t i = (rank * shares + n_ranks - 1) / n_ranks;
    if (i >= shares || i * n_ranks / shares != rank)
        return 0;
    *first = n_blocks * i / shares;
    *end = n_blocks * (i + 1) / shares;
    return 1;
}

int store_mark(struct io_store *s, uint64_t bytes, uint64_t offset, struct brg_error *err)
{
    if (s->token.layout == IO_PARTS || !s->checksums || !bytes)
        return 0;
    int rc = store_need_sums(s, err);
    return rc ? rc : store_sums_failed(s, sums_mark(s->sums, bytes, offset), err);
}

int store_settle(struct io_store *s, uint32_t n_ranks, uint64_t size, struct brg_error *err)
{
    uint64_t n_blocks = store_n_blocks(&s->token, size), first, end, failed = 0;
    if (s->token.layout == IO_PARTS || !s->checksums ||
        !has_share(s->rank, n_ranks, n_blocks, &first, &end))
        return 0;
    int rc = store_need_sums(s, err);
    if (rc)
        return rc;
    io_fault_step();
    int fd = s->fd >= 0 ? s->fd : store_io_open(s->token.temporary, O_RDONLY, 0);
    rc = fd < 0 ? fd : sums_settle(s->sums, fd, size, first, end, &failed);
    if (fd >= 0 && fd != s->fd)
        close(fd);
    drop_sums(s);
    return rc ? store_failed(err, rc, s->token.path, (int64_t)failed, "read back") : 0;
}
