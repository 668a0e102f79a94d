/* See ring.h. By its system calls: liburing is not everywhere. */
#include "store/ring.h"
#include "base/newer.h"

#include <stdlib.h>

#if __has_include(<linux/io_uring.h>) /* headers of Linux 5.1 and later */

#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdatomic.h>
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

void ring_close(struct ring *r)
{
    if (!r)
        return;
    if (r->sq && r->sq != MAP_FAILED)
        munmap(r->sq, r->sq_bytes);
    if (r->cq && r->cq != MAP_FAILED)
        munmap(r->cq, r->cq_bytes);
    if (r->sqes && (void *)r->sqes != MAP_FAILED)
        munmap(r->sqes, r->sqe_bytes);
    if (r->fd >= 0)
        close(r->fd);
    free(r);
}

static void *map(int fd, size_t bytes, off_t what)
{
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, what);
}

struct ring *ring_open(unsigned entries)
{
    struct io_uring_params p = {0};
    struct ring *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->fd = (int)syscall(SYS_io_uring_setup, entries, &p);
    if (r->fd < 0) {
        ring_close(r);
        return NULL;
    }
    fcntl(r->fd, F_SETFD, FD_CLOEXEC);
    r->sq_bytes = p.sq_off.array + p.sq_entries * sizeof(uint32_t);
    r->cq_bytes = p.cq_off.cqes + p.cq_entries * sizeof *r->cqes;
    r->sqe_bytes = p.sq_entries * sizeof *r->sqes;
    r->sq = map(r->fd, r->sq_bytes, IORING_OFF_SQ_RING);
    r->cq = map(r->fd, r->cq_bytes, IORING_OFF_CQ_RING);
    r->sqes = map(r->fd, r->sqe_bytes, IORING_OFF_SQES);
    if (r->sq == MAP_FAILED || r->cq == MAP_FAILED || (void *)r->sqes == MAP_FAILED) {
        ring_close(r);
        return NULL;
    }
    r->sq_tail = (_Atomic uint32_t *)(void *)(r->sq + p.sq_off.tail);
    r->sq_array = (uint32_t *)(void *)(r->sq + p.sq_off.array);
    r->sq_mask = *(uint32_t *)(void *)(r->sq + p.sq_off.ring_mask);
    r->cq_head = (_Atomic uint32_t *)(void *)(r->cq + p.cq_off.head);
    r->cq_tail = (_Atomic uint32_t *)(void *)(r->cq + p.cq_off.tail);
    r->cq_mask = *(uint32_t *)(void *)(r->cq + p.cq_off.ring_mask);
    r->cqes = (struct io_uring_cqe *)(void *)(r->cq + p.cq_off.cqes);
    return r;
}

int ring_write(struct ring *r, int fd, const void *buf, size_t bytes, uint64_t offset, uint64_t tag)
{
    uint32_t tail = atomic_load_explicit(r->sq_tail, memory_order_relaxed), i = tail & r->sq_mask;
    r->sqes[i] = (struct io_uring_sqe){.opcode = IORING_OP_WRITE,
                                       .fd = fd,
                                       .addr = (uintptr_t)buf,
                                       .len = (uint32_t)bytes,
                                       .off = offset,
                                       .user_data = tag};
    r->sq_array[i] = i;
    atomic_store_explicit(r->sq_tail, tail + 1, memory_order_release);
    long n;
    do
        n = syscall(SYS_io_uring_enter, r->fd, 1, 0, 0, NULL, 0);
    while (n < 0 && errno == EINTR);
    return n == 1 ? 0 : -EIO;
}

uint64_t ring_reap(struct ring *r, long *result)
{
    uint32_t head = atomic_load_explicit(r->cq_head, memory_order_relaxed);
    while (head == atomic_load_explicit(r->cq_tail, memory_order_acquire))
        syscall(SYS_io_uring_enter, r->fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0);
    struct io_uring_cqe cqe = r->cqes[head & r->cq_mask];
    atomic_store_explicit(r->cq_head, head + 1, memory_order_release);
    *result = cqe.res;
    return cqe.user_data;
}

#else

struct ring *ring_open(unsigned entries)
{
    (void)entries;
    return NULL;
}

void ring_close(struct ring *r)
{
    (void)r;
}

/* Of no ring: nobody comes here. */
int ring_write(struct ring *r, int fd, const void *buf, size_t bytes, uint64_t offset, uint64_t tag)
{
    (void)r, (void)fd, (void)buf, (void)bytes, (void)offset, (void)tag;
    abort();
}

uint64_t ring_reap(struct ring *r, long *result)
{
    (void)r, (void)result;
    abort();
}

#endif
