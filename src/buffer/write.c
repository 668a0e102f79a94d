/* Writing: bytes go into the file's open block; a full one is sealed and written in the background.
 *
 * A write that begins where the open block ends, or inside it, goes on there; any other seals it
 * and opens a new one. A block ends where the file's offset is a multiple of its size, so that the
 * file system sees whole, aligned pieces. A block of a file opened with O_APPEND holds whole
 * writes only, as somebody else may append in between.
 */
#include "base/clock.h"
#include "buffer/copy.h"
#include "buffer/faults.h"
#include "buffer/worker.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#define FURTHEST_BYTES ((uint64_t)1 << 43) /* beyond, the kernel may know a limit */

static void count_pending(struct file *f)
{
    int now = f->open || f->n_written < f->n_sealed;
    if (now == f->counted)
        return;
    f->counted = (char)now;
    __atomic_add_fetch(&n_pending, now ? 1 : -1, __ATOMIC_SEQ_CST);
    if (!now) {
        f->low = UINT64_MAX;
        f->high = 0;
        f->appending = 0;
    }
}

int file_pending(const struct file *f)
{
    return f->counted;
}

void block_seal(struct file *f)
{
    struct block *b = f->open;
    if (!b)
        return;
    f->open = NULL;
    f->n_sealed++;
    worker_sealed(f);
    worker_push(b);
    count_pending(f);
}

static long write_some(const struct block *b, uint64_t done)
{
    long n = faults_write(b->len - done);
    if (n < 0)
        return n;
    return sys_call(SYS_pwrite64, b->fd, (long)(b->data + done), n, (long)(b->start + done), 0, 0);
}

int block_write(struct block *b)
{
    uint64_t done = 0;
    if (!file_is(b->file, b->fd))
        return -EBADF; /* closed by a way that no hook sees: never write to another file */
    while (done < b->len) {
        long r = write_some(b, done);
        if (r == 0)
            return -ENOSPC;
        if (r < 0 && r != -EINTR)
            return (int)r;
        done += r > 0 ? (uint64_t)r : 0;
    }
    if (b->append) {
        struct stat st;
        if (sys_fstat(b->fd, &st) == 0 && (uint64_t)st.st_size != b->start + b->len)
            b->append = 2;
    }
    return 0;
}

void block_written(struct block *b, int rc)
{
    struct file *f = b->file;
    f->n_written++; /* a file's blocks are written in turn: see worker.c */
    f->record->flushes++;
    f->record->flush_bytes += b->len;
    f->shared_append |= b->append == 2;
    if (rc < 0) {
        f->record->errors++;
        if (!f->error) {
            f->error = rc;
            f->record->error = -rc;
        }
    }
    count_pending(f);
}

int file_drain(struct file *f)
{
    block_seal(f);
    uint64_t sealed = f->n_sealed;
    int waits = f->n_written < sealed;
    uint64_t begin = report_wanted && waits ? brg_clock_ns() : 0;
    f->record->waits += waits;
    while (f->n_written < sealed)
        if (file_wait(f))
            return REAL_CALL;
    if (begin)
        f->record->wait_ns += brg_clock_ns() - begin;
    return 0;
}

/* Opens a block for bytes at `at`. Others may open none meanwhile: one call at a time writes. 0, or
 * -ENOMEM: no room. */
static int open_block(struct file *f, const struct desc *d, uint64_t at)
{
    const uint64_t size = f->rule.size_bytes;
    int waits = f->n_sealed - f->n_written >= f->rule.count;
    uint64_t begin = report_wanted && waits ? brg_clock_ns() : 0;
    f->record->waits += waits;
    while (f->n_sealed - f->n_written >= f->rule.count)
        file_wait(f);
    if (begin)
        f->record->wait_ns += brg_clock_ns() - begin;
    struct block *b = block_take(size);
    if (!b)
        return -ENOMEM;
    b->file = f;
    b->fd = d->fd;
    b->start = at;
    b->append = d->append;
    b->cap = d->append ? size : size - at % size;
    b->since_ns = brg_clock_ns();
    f->open = b;
    f->appending = d->append;
    count_pending(f);
    worker_opened(f);
    return 0;
}

/* The call itself, at once, with everything before it in the file. */
static ssize_t write_direct(struct desc *d, const struct iovec *iov, int n, off_t at)
{
    struct file *f = d->file;
    file_drain(f);
    if (f->error)
        return ERROR_FIRST;
    int at_position = at == AT_POSITION;
    long r;
    f->record->direct_writes++;
    if (d->append && at_position) {
        r = sys_call(SYS_writev, d->fd, (long)iov, n, 0, 0, 0);
        long end = sys_call(SYS_lseek, d->fd, 0, 1 /* SEEK_CUR */, 0, 0, 0);
        if (r > 0 && end >= 0)
            d->position = (uint64_t)end;
    } else {
        uint64_t where = at_position ? d->position : (uint64_t)at;
        r = sys_call(SYS_pwritev, d->fd, (long)iov, n, (long)where, (long)(where >> 32), 0);
        if (r > 0 && at_position)
            d->position += (uint64_t)r;
    }
    file_discard_reads(f, 0, UINT64_MAX);
    return r;
}

/* Where a write of this desc goes, or -errno. */
static int64_t place(struct desc *d, off_t at)
{
    struct file *f = d->file;
    if (file_pending(f) && d->append != f->appending)
        file_drain(f);
    if (!d->append)
        return at == AT_POSITION ? (int64_t)d->position : (int64_t)at;
    if (file_pending(f))
        return (int64_t)f->end;
    struct stat st;
    int rc = sys_fstat(d->fd, &st);
    return rc < 0 ? rc : (int64_t)st.st_size;
}

/* Copies bytes of the call into blocks. Returns how many went in; *rc tells why not all. */
static uint64_t put(struct desc *d, struct cursor *c, uint64_t at, uint64_t total, int *rc)
{
    struct file *f = d->file;
    uint64_t done = 0;
    *rc = 0;
    while (done < total) {
        struct block *b = f->open;
        uint64_t here = at + done, left = total - done;
        int goes_on = b && here >= b->start && here <= b->start + b->len &&
                      here < b->start + b->cap && (!b->append || b->start + b->cap - here >= left);
        if (!goes_on) {
            block_seal(f);
            *rc = open_block(f, d, here);
            if (*rc)
                return done;
            b = f->open;
        } else
            f->record->write_hits += done == 0;
        uint64_t room = b->start + b->cap - here, now = left < room ? left : room;
        file_discard_reads(f, here, here + now); /* here, as a wait lets others read */
        if (copy_in(b->data + (here - b->start), c, now)) {
            *rc = -EFAULT;
            return done;
        }
        if (here + now > b->start + b->len)
            b->len = here + now - b->start;
        f->low = here < f->low ? here : f->low;
        f->high = here + now > f->high ? here + now : f->high;
        f->end = b->start + b->len;
        done += now;
        if (b->len == b->cap)
            block_seal(f);
    }
    return done;
}

/* Without memory in the middle of a call: what is left of it, at once. Apart, for its stack. */
static __attribute__((noinline)) ssize_t write_rest(struct desc *d, const struct cursor *c,
                                                    off_t at, uint64_t done)
{
    struct iovec rest[1024];
    int n = cursor_rest(c, rest, 1024);
    ssize_t more = write_direct(d, rest, n, at == AT_POSITION ? at : at + (off_t)done);
    return more > 0 ? (ssize_t)done + more : (ssize_t)done;
}

static ssize_t write_locked(struct desc *d, const struct iovec *iov, int n, off_t at)
{
    struct file *f = d->file;
    struct cursor c = {iov, n, 0};
    uint64_t total = cursor_bytes(iov, n);
    if (d->mode == O_RDONLY || total == 0 || total >= f->rule.size_bytes || d->direct_writes ||
        (at < 0 && at != AT_POSITION))
        return write_direct(d, iov, n, at);
    int64_t where = place(d, at);
    if (where < 0)
        return where;
    uint64_t end = (uint64_t)where + total;
    if (end > FURTHEST_BYTES || end > file_limit_bytes)
        return write_direct(d, iov, n, at);
    int rc;
    uint64_t done = put(d, &c, (uint64_t)where, total, &rc);
    if (f->open && f->open->len == 0) { /* of a fault: nothing was to be written */
        struct block *b = f->open;
        f->open = NULL;
        worker_sealed(f);
        block_give(b);
        count_pending(f);
    }
    if (done && at == AT_POSITION)
        d->position = (uint64_t)where + done;
    if (done == total)
        return (ssize_t)done;
    if (done == 0)
        return write_direct(d, iov, n, at);
    return rc == -EFAULT ? (ssize_t)done : write_rest(d, &c, at, done);
}

ssize_t file_write(struct desc *d, const struct iovec *iov, int n, off_t at)
{
    struct file *f = d->file;
    struct record *record = f->record;
    uint64_t begin = report_wanted ? brg_clock_ns() : 0;
    int call = CALL_WRITE | (at == AT_POSITION ? CALL_POSITION : CALL_AT);
    ssize_t r = call_begin(d, call);
    if (r == 0) {
        r = f->error ? ERROR_FIRST : f->shared_append ? REAL_CALL : write_locked(d, iov, n, at);
        call_end(d, call);
        if (r == ERROR_FIRST)
            r = file_take_error(f);
        else if (r == REAL_CALL)
            file_drop_locked(f, "another process appends to it too");
    }
    if (r != REAL_CALL) {
        record->writes++;
        if (r > 0) {
            record->write_bytes += (uint64_t)r;
            record->write_sizes[report_size((uint64_t)r)]++;
        }
        if (begin)
            record->write_ns += brg_clock_ns() - begin;
    }
    file_leave(f);
    return r;
}
