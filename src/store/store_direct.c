/* See store_direct.h. io_uring by its system calls: see io_uring(7); a ring of DIRECT_BUFFERS. */
#include "store/store_direct.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct ring {
    int fd;
    size_t sq_bytes, cq_bytes, sqe_bytes;
    char *sq, *cq;
    struct io_uring_sqe *sqes;
    struct io_uring_cqe *cqes;
    _Atomic uint32_t *sq_tail, *cq_head, *cq_tail;
    uint32_t *sq_array, sq_mask, cq_mask;
};

struct direct {
    int fd, ringed;
    size_t piece; /* bytes of a buffer */
    char *buffers;
    uint32_t free; /* bit i: buffer i */
    struct ring ring;
};

static void ring_close(struct ring *r)
{
    if (r->sq && r->sq != MAP_FAILED)
        munmap(r->sq, r->sq_bytes);
    if (r->cq && r->cq != MAP_FAILED)
        munmap(r->cq, r->cq_bytes);
    if (r->sqes && (void *)r->sqes != MAP_FAILED)
        munmap(r->sqes, r->sqe_bytes);
    close(r->fd);
}

static void *map(int fd, size_t bytes, off_t what)
{
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, what);
}

static int ring_open(struct ring *r)
{
    struct io_uring_params p = {0};
    r->fd = (int)syscall(SYS_io_uring_setup, DIRECT_BUFFERS, &p);
    if (r->fd < 0)
        return -errno;
    fcntl(r->fd, F_SETFD, FD_CLOEXEC);
    r->sq_bytes = p.sq_off.array + p.sq_entries * sizeof(uint32_t);
    r->cq_bytes = p.cq_off.cqes + p.cq_entries * sizeof *r->cqes;
    r->sqe_bytes = p.sq_entries * sizeof *r->sqes;
    r->sq = map(r->fd, r->sq_bytes, IORING_OFF_SQ_RING);
    r->cq = map(r->fd, r->cq_bytes, IORING_OFF_CQ_RING);
    r->sqes = map(r->fd, r->sqe_bytes, IORING_OFF_SQES);
    if (r->sq == MAP_FAILED || r->cq == MAP_FAILED || (void *)r->sqes == MAP_FAILED) {
        ring_close(r);
        return -ENOMEM;
    }
    r->sq_tail = (_Atomic uint32_t *)(void *)(r->sq + p.sq_off.tail);
    r->sq_array = (uint32_t *)(void *)(r->sq + p.sq_off.array);
    r->sq_mask = *(uint32_t *)(void *)(r->sq + p.sq_off.ring_mask);
    r->cq_head = (_Atomic uint32_t *)(void *)(r->cq + p.cq_off.head);
    r->cq_tail = (_Atomic uint32_t *)(void *)(r->cq + p.cq_off.tail);
    r->cq_mask = *(uint32_t *)(void *)(r->cq + p.cq_off.ring_mask);
    r->cqes = (struct io_uring_cqe *)(void *)(r->cq + p.cq_off.cqes);
    return 0;
}

int direct_open(struct direct **out, const char *path, size_t memory, int uring)
{
    struct direct *d = calloc(1, sizeof *d);
    if (!d)
        return -ENOMEM;
    d->piece = memory / DIRECT_BUFFERS / DIRECT_ALIGN * DIRECT_ALIGN;
    d->fd = open(path, O_WRONLY | O_DIRECT | O_CLOEXEC);
    int rc = d->fd < 0 ? -errno : d->piece ? 0 : -ENOMEM;
    if (!rc && posix_memalign((void **)&d->buffers, DIRECT_ALIGN, DIRECT_BUFFERS * d->piece))
        rc = -ENOMEM;
    if (rc) {
        if (d->fd >= 0)
            close(d->fd);
        free(d);
        return rc;
    }
    d->free = (1u << DIRECT_BUFFERS) - 1;
    d->ringed = uring && ring_open(&d->ring) == 0; /* forbidden in many containers */
    *out = d;
    return 0;
}

void direct_close(struct direct *d)
{
    if (d->ringed)
        ring_close(&d->ring);
    close(d->fd);
    free(d->buffers);
    free(d);
}

static int submit(struct direct *d, uint32_t buffer, size_t bytes, uint64_t offset)
{
    struct ring *r = &d->ring;
    uint32_t tail = atomic_load_explicit(r->sq_tail, memory_order_relaxed), i = tail & r->sq_mask;
    r->sqes[i] = (struct io_uring_sqe){.opcode = IORING_OP_WRITE,
                                       .fd = d->fd,
                                       .addr = (uintptr_t)(d->buffers + buffer * d->piece),
                                       .len = (uint32_t)bytes,
                                       .off = offset,
                                       .user_data = offset << 2 | buffer};
    r->sq_array[i] = i;
    atomic_store_explicit(r->sq_tail, tail + 1, memory_order_release);
    long n;
    do
        n = syscall(SYS_io_uring_enter, r->fd, 1, 0, 0, NULL, 0);
    while (n < 0 && errno == EINTR);
    return n == 1 ? 0 : -EIO;
}

/* Takes in one completion; a piece that was not written whole brings *whole_to down to where it
 * begins. */
static void reap(struct direct *d, uint64_t end, uint64_t *whole_to)
{
    struct ring *r = &d->ring;
    uint32_t head = atomic_load_explicit(r->cq_head, memory_order_relaxed);
    while (head == atomic_load_explicit(r->cq_tail, memory_order_acquire))
        syscall(SYS_io_uring_enter, r->fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0);
    struct io_uring_cqe cqe = r->cqes[head & r->cq_mask];
    atomic_store_explicit(r->cq_head, head + 1, memory_order_release);
    uint64_t at = cqe.user_data >> 2, wanted = end - at < d->piece ? end - at : d->piece;
    if (cqe.res < 0 || (uint64_t)cqe.res < wanted)
        *whole_to = at < *whole_to ? at : *whole_to;
    d->free |= 1u << (cqe.user_data & 3);
}

static size_t write_ringed(struct direct *d, const char *buf, size_t bytes, uint64_t offset)
{
    uint64_t end = offset + bytes, at = offset, whole_to = end;
    const uint32_t all = (1u << DIRECT_BUFFERS) - 1;
    while (at < end && whole_to == end) {
        while (!d->free)
            reap(d, end, &whole_to);
        uint32_t buffer = (uint32_t)__builtin_ctz(d->free);
        size_t n = end - at < d->piece ? (size_t)(end - at) : d->piece;
        memcpy(d->buffers + buffer * d->piece, buf + (at - offset), n);
        d->free &= ~(1u << buffer);
        if (submit(d, buffer, n, at)) {
            d->free |= 1u << buffer;
            whole_to = at;
        }
        at += n;
    }
    while (d->free != all)
        reap(d, end, &whole_to);
    return (size_t)(whole_to - offset);
}

static size_t write_one_by_one(struct direct *d, const char *buf, size_t bytes, uint64_t offset)
{
    size_t done = 0;
    while (done < bytes) {
        size_t n = bytes - done < d->piece ? bytes - done : d->piece;
        memcpy(d->buffers, buf + done, n);
        if (pwrite(d->fd, d->buffers, n, (off_t)(offset + done)) != (ssize_t)n)
            break;
        done += n;
    }
    return done;
}

size_t direct_write(struct direct *d, const void *buf, size_t bytes, uint64_t offset)
{
    size_t whole = bytes / DIRECT_ALIGN * DIRECT_ALIGN;
    if (offset % DIRECT_ALIGN || !whole)
        return 0;
    return d->ringed ? write_ringed(d, buf, whole, offset)
                     : write_one_by_one(d, buf, whole, offset);
}
