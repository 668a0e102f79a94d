/* See fill.h. */
#include "buffer/fill.h"
#include "base/clock.h"
#include "buffer/direct.h"
#include "buffer/inode.h"
#include "buffer/worker.h"

#include <errno.h>

#define WINDOW_LEAST 65536u
#define WINDOW_FAST 131072u

void fill_undo(struct file *f, struct read_block *r)
{
    if (r->state == READ_EMPTY)
        return;
    r->state = READ_EMPTY;
    f->n_filled--;
    if (r->data)
        memory_give(r->data, r->room_bytes);
    r->data = NULL;
}

void file_discard_reads(struct file *f, uint64_t from, uint64_t to)
{
    if (!f->n_filled)
        return;
    for (struct read_block *r = f->read; r < f->read + READ_BLOCKS; r++) {
        uint64_t end = r->start + (r->state == READ_FILLING ? r->want : r->len);
        if (r->state == READ_EMPTY || from >= end || to <= r->start)
            continue;
        if (r->state == READ_FILLING)
            r->stale = 1;
        else
            fill_undo(f, r);
    }
}

struct read_block *fill_covering(struct file *f, uint64_t at)
{
    if (!f->n_filled)
        return NULL;
    for (struct read_block *r = f->read; r < f->read + READ_BLOCKS; r++) {
        uint64_t n = r->state == READ_READY ? r->len : r->state == READ_FILLING ? r->want : 0;
        if (at - r->start < n && !(r->state == READ_FILLING && r->stale))
            return r;
    }
    return NULL;
}

struct read_block *fill_begin(struct file *f, uint64_t at, uint64_t want)
{
    struct read_block *best = NULL;
    unsigned n = f->rule.count < READ_BLOCKS ? f->rule.count : READ_BLOCKS;
    for (struct read_block *r = f->read; r < f->read + n; r++) {
        if (r->state == READ_EMPTY) {
            best = r;
            break;
        }
        if (r->state == READ_READY && (!best || r->order < best->order))
            best = r;
    }
    if (!best)
        return NULL;
    fill_undo(f, best);
    best->data = memory_take(f->rule.size_bytes);
    if (!best->data)
        return NULL;
    best->room_bytes = f->rule.size_bytes;
    best->state = READ_FILLING;
    best->stale = best->ahead = best->past = 0;
    best->start = at;
    best->want = want;
    best->len = 0;
    best->epoch = __atomic_load_n(&epoch, __ATOMIC_ACQUIRE);
    best->stamp_ns = brg_clock_coarse_ns();
    best->order = ++f->n_order;
    f->n_filled++;
    f->n_busy++;
    return best;
}

void fill_end(struct file *f, struct read_block *r, int64_t got)
{
    f->n_busy--;
    f->record->fills++;
    f->record->fills_past_cache += r->past;
    f->record->fill_bytes += got > 0 ? (uint64_t)got : 0;
    r->len = got > 0 ? (uint64_t)got : 0;
    r->state = READ_READY;
    if (r->stale || got <= 0)
        fill_undo(f, r);
    event_tell(&f->event);
}

static int64_t read_into(int fd, struct read_block *r)
{
    uint64_t got = 0;
    while (got < r->want) {
        long n = sys_pread(fd, r->data + got, r->want - got, (int64_t)(r->start + got));
        if (n == 0 || (n < 0 && n != -EINTR && got))
            break;
        if (n < 0 && n != -EINTR)
            return n;
        got += n > 0 ? (uint64_t)n : 0;
    }
    return (int64_t)got;
}

int64_t fill_now(struct file *f, struct desc *d, int fd, struct read_block *r)
{
    r->past = direct_begin(f, d, fd, r) != 0;
    int64_t got = read_into(fd, r);
    if (!r->past)
        return got;
    direct_end(f, d, fd);
    if (got < 0) { /* its server does not know such reads */
        f->past_cache = r->past = 0;
        got = read_into(fd, r);
    }
    return got;
}

int64_t block_read(struct block *b)
{
    struct file *f = b->file;
    return file_is(f, b->fd) ? fill_now(f, b->desc, b->fd, &f->read[b->slot]) : -EBADF;
}

void block_filled(struct block *b, int64_t rc)
{
    fill_end(b->file, &b->file->read[b->slot], rc);
}

uint64_t fill_window(struct desc *d, uint64_t at, uint64_t asked)
{
    const struct file *f = d->file;
    const uint64_t size = f->rule.size_bytes;
    uint64_t most = d->slow || size < WINDOW_FAST ? size : WINDOW_FAST;
    uint64_t window = d->window ? d->window * 4 : asked * 4;
    window = window < WINDOW_LEAST ? WINDOW_LEAST : window;
    d->window = window = window > most ? most : window;
    uint64_t cut = (at + window) & 4095;
    return window > cut ? window - cut : window;
}

void fill_ahead(struct desc *d, const struct read_block *last)
{
    struct file *f = d->file;
    uint64_t at = last->start + last->want;
    unsigned most = d->depth > f->rule.prefetch ? d->depth : f->rule.prefetch;
    most = most < f->rule.count ? most : f->rule.count - 1;
    if (file_pending(f) || last->len < last->want)
        return;
    for (unsigned i = 0; i < most && i < READ_BLOCKS - 1; i++) {
        struct read_block *r = fill_covering(f, at);
        if (!r && at >= inode_size(d->fd))
            return;
        if (!r) {
            struct block *b = block_take(0);
            r = b ? fill_begin(f, at, fill_window(d, at, 0)) : NULL;
            if (!r) {
                if (b)
                    block_give(b);
                return;
            }
            r->ahead = 1;
            b->file = f;
            b->fd = d->fd;
            b->reads = 1;
            b->desc = d;
            b->slot = (unsigned)(r - f->read);
            f->record->ahead++;
            worker_push(b);
        }
        at = r->start + r->want;
    }
}
