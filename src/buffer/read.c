/* Reading: after two reads in a row that go on where the last one ended, more is read than asked
 * for, in growing pieces: up to what a processor's own cache holds, or up to the rule's size on
 * storage that is slower than memory; there, the pieces after it are read in the background. Not on
 * FUSE, unless past the page cache: the kernel reads ahead there itself, and a server on the node
 * works as much for each byte whoever asks, so that more of us would be in its way.
 *
 * Bytes read ahead are used only while they are fresh: no older than the rule says, not written
 * over, not behind where the program has read already, and not from before something that may have
 * told this process that others have written (an open, a lock, a child that ended: each changes
 * `epoch`). The end of the file is never remembered: it is the kernel that says it. A read that
 * wants bytes on their way to the file takes them from the open block if they are all there, else
 * waits until the file has them.
 */
#include "base/clock.h"
#include "buffer/copy.h"
#include "buffer/direct.h"
#include "buffer/faults.h"
#include "buffer/fill.h"
#include "buffer/worker.h"

#include <errno.h>

#define SLOW_BYTES_A_US 500 /* below, reading ahead in the background pays */

/* Never where the rule says 0: the coarse clock may not have gone on since. */
static int is_fresh(const struct file *f, const struct read_block *r)
{
    return f->rule.fresh_ns && r->epoch == __atomic_load_n(&epoch, __ATOMIC_ACQUIRE) &&
           brg_clock_coarse_ns() - r->stamp_ns <= f->rule.fresh_ns;
}

static int through_fuse(const struct file *f)
{
    return f->on_fuse && !f->past_cache;
}

/* Reads a window at `at`. Returns the bytes it has, 0 at the file's end, or -1: not this way. */
static int64_t read_window(struct desc *d, uint64_t at, uint64_t asked)
{
    struct file *f = d->file;
    struct read_block *r = fill_begin(f, at, fill_window(d, at, asked));
    if (!r)
        return -1;
    int fd = d->fd;
    lock_leave(&f->lock);
    uint64_t begin = brg_clock_ns();
    int64_t got = fill_now(f, d, fd, r);
    uint64_t ns = brg_clock_ns() - begin;
    lock_take(&f->lock);
    int stale = r->stale, usable = !stale && got > 0;
    fill_end(f, r, got);
    if (!usable)
        return got == 0 && !stale ? 0 : -1;
    d->slow = !through_fuse(f) && (r->past || (uint64_t)got * 1000 < ns * SLOW_BYTES_A_US);
    if (d->slow && f->rule.prefetch && f->rule.count > 1) {
        r->ahead = 2; /* go on reading ahead when the next is begun */
        fill_ahead(d, r);
    }
    return got;
}

static long read_rest(struct desc *d, const struct cursor *c, uint64_t at)
{
    struct iovec rest[1024];
    struct iovec one[1];
    struct file *f = d->file;
    struct iovec *pieces = c->n == 1 ? one : rest;
    int n = cursor_rest(c, pieces, c->n == 1 ? 1 : 1024), fd = d->fd, again = 0;
    long r;
    f->record->direct_reads++;
    do {
        f->n_busy++;
        lock_leave(&f->lock);
        faults_read();
        r = sys_call(SYS_preadv, fd, (long)pieces, n, (long)at, 0, 0);
        lock_take(&f->lock);
        f->n_busy--;
        event_tell(&f->event);
    } while (!again++ && direct_refused(f, r));
    return r;
}

/* Bytes from blocks, filling them if the program reads on and on. Returns how many; *end: it was
 * the end of the file, or the program's memory is not there: there is no more to do. */
static uint64_t from_blocks(struct desc *d, struct cursor *c, uint64_t at, uint64_t total, int *end)
{
    struct file *f = d->file;
    int may_fill = d->streak >= 2 && total * 2 <= f->rule.size_bytes && f->rule.fresh_ns;
    uint64_t done = 0;
    *end = 0;
    while (done < total) {
        struct read_block *r = fill_covering(f, at + done);
        if (r && r->state == READ_FILLING) {
            f->record->waits++;
            if (r->ahead == 1 && d->depth < READ_BLOCKS - 1) /* more of them at a time, then */
                d->depth = (d->depth ? d->depth : f->rule.prefetch) + 1;
            file_wait(f);
            continue;
        }
        if (r && !is_fresh(f, r)) {
            fill_undo(f, r);
            continue;
        }
        if (r) {
            uint64_t have = r->start + r->len - (at + done), left = total - done;
            uint64_t now = have < left ? have : left;
            if (copy_out(r->data + (at + done - r->start), c, now)) {
                *end = done != 0;
                return done;
            }
            if (r->ahead == 1) {
                f->record->ahead_used++;
                r->ahead = 2;
                fill_ahead(d, r);
            }
            done += now;
            continue;
        }
        if (!may_fill || file_pending(f)) /* the file has not yet what is pending */
            return done;
        int64_t got = read_window(d, at + done, total);
        if (got <= 0) {
            *end = got == 0;
            return done;
        }
    }
    return done;
}

/* All of it is in the open block: what was written last, so it is right whatever is queued. */
static int from_open_block(struct file *f, struct cursor *c, uint64_t at, uint64_t total)
{
    const struct block *b = f->open;
    return b && !b->append && at >= b->start && at + total <= b->start + b->len &&
           copy_out(b->data + (at - b->start), c, total) == 0;
}

static ssize_t read_at(struct desc *d, struct cursor *c, uint64_t at, uint64_t total)
{
    struct file *f = d->file;
    int end;
    if (file_pending(f) && at < f->high && at + total > f->low) {
        if (from_open_block(f, c, at, total)) {
            f->record->read_hits++;
            return (ssize_t)total;
        }
        file_drain(f);
        if (f->error)
            return ERROR_FIRST;
    }
    uint64_t fills = f->record->fills;
    uint64_t done = from_blocks(d, c, at, total, &end);
    f->record->read_hits += done == total && fills == f->record->fills;
    if (done == total || end)
        return (ssize_t)done;
    for (;;) {
        /* what is written beyond makes the file longer than the kernel knew when it was asked */
        uint64_t high = file_pending(f) ? f->high : 0;
        long r = read_rest(d, c, at + done);
        if (r >= 0 && (uint64_t)r < total - done && high > at + done + (uint64_t)r) {
            file_drain(f);
            continue;
        }
        if (r < 0)
            return done ? (ssize_t)done : r;
        return (ssize_t)done + r;
    }
}

static ssize_t read_locked(struct desc *d, const struct iovec *iov, int n, off_t at)
{
    struct file *f = d->file;
    struct cursor c = {iov, n, 0};
    uint64_t total = cursor_bytes(iov, n);
    if (d->mode == O_WRONLY || total == 0 || (at < 0 && at != AT_POSITION)) {
        if (at != AT_POSITION)
            return sys_call(SYS_preadv, d->fd, (long)iov, n, (long)at, 0, 0);
        file_drain(f);
        ssize_t r = sys_call(SYS_preadv, d->fd, (long)iov, n, (long)d->position, 0, 0);
        d->position += r > 0 ? (uint64_t)r : 0;
        return r;
    }
    uint64_t where = at == AT_POSITION ? d->position : (uint64_t)at;
    if (where == d->next_read)
        d->streak += d->streak < 100;
    else {
        d->streak = 1;
        d->window = d->depth = 0;
        if (where < d->next_read) /* what is read again is asked for again */
            file_discard_reads(f, 0, UINT64_MAX);
    }
    ssize_t r = read_at(d, &c, where, total);
    if (r >= 0) {
        d->next_read = where + (uint64_t)r;
        if (at == AT_POSITION)
            d->position = where + (uint64_t)r;
    }
    return r;
}

ssize_t file_read(struct desc *d, const struct iovec *iov, int n, off_t at)
{
    struct file *f = d->file;
    struct record *record = f->record;
    uint64_t begin = report_wanted ? brg_clock_ns() : 0;
    int call = at == AT_POSITION ? CALL_POSITION : CALL_AT;
    ssize_t r = call_begin(d, call);
    if (r == 0) {
        r = f->error ? ERROR_FIRST : read_locked(d, iov, n, at);
        call_end(d, call);
        if (r == ERROR_FIRST)
            r = file_take_error(f);
    }
    if (r != REAL_CALL) {
        record->reads++;
        if (r > 0) {
            record->read_bytes += (uint64_t)r;
            record->read_sizes[report_size((uint64_t)r)]++;
        }
        if (begin)
            record->read_ns += brg_clock_ns() - begin;
    }
    file_leave(f);
    return r;
}
