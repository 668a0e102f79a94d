/* See store_direct.h. */
#include "store/store_direct.h"
#include "store/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct direct {
    int fd;
    size_t piece; /* bytes of a buffer */
    char *buffers;
    uint32_t free;     /* bit i: buffer i */
    struct ring *ring; /* or NULL: one buffer at a time */
};

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
    d->ring = uring ? ring_open(DIRECT_BUFFERS) : NULL;
    *out = d;
    return 0;
}

void direct_close(struct direct *d)
{
    ring_close(d->ring);
    close(d->fd);
    free(d->buffers);
    free(d);
}

/* Takes in one completion; a piece that was not written whole brings *whole_to down to where it
 * begins. */
static void reap(struct direct *d, uint64_t end, uint64_t *whole_to)
{
    long written;
    uint64_t tag = ring_reap(d->ring, &written), at = tag >> 2;
    uint64_t wanted = end - at < d->piece ? end - at : d->piece;
    if (written < 0 || (uint64_t)written < wanted)
        *whole_to = at < *whole_to ? at : *whole_to;
    d->free |= 1u << (tag & 3);
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
        char *piece = d->buffers + buffer * d->piece;
        memcpy(piece, buf + (at - offset), n);
        d->free &= ~(1u << buffer);
        if (ring_write(d->ring, d->fd, piece, n, at, at << 2 | buffer)) {
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
    return d->ring ? write_ringed(d, buf, whole, offset) : write_one_by_one(d, buf, whole, offset);
}
