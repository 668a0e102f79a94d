/* See parts_index.h: reading an index. */
#include "store/parts_index.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/error.h"
#include "base/io.h"
#include "store/store_io.h"

_Static_assert(sizeof(struct parts_head) == PARTS_HEAD, "the head is a page");
_Static_assert(PARTS_PAGE % sizeof(struct parts_extent) == 0, "an extent lies in one page");

uint64_t parts_head_checksum(const struct parts_head *head)
{
    struct parts_head copy = *head;
    copy.checksum = 0;
    return XXH3_64bits(&copy, sizeof copy);
}

static int damaged(struct brg_error *err, const char *path, uint64_t offset, const char *what)
{
    brg_error_set(err, -EBADMSG, "%s, an index of parts, is damaged at byte %llu: %s", path,
                  (unsigned long long)offset, what);
    if (err) {
        err->offset = (int64_t)offset;
        snprintf(err->path, sizeof err->path, "%s", path);
    }
    return -EBADMSG;
}

int parts_head_of(int fd, const char *path, struct parts_head *head, struct brg_error *err)
{
    struct stat st;
    ssize_t got = store_io_read(fd, head, sizeof *head, 0);
    if (got < 0 || fstat(fd, &st))
        return store_failed(err, got < 0 ? (int)got : -errno, path, -1, "read");
    if (got < 8 || head->magic != PARTS_MAGIC)
        return brg_error_set(err, -EMEDIUMTYPE, "%s is no index of parts", path);
    if (got < (ssize_t)sizeof *head || head->checksum != parts_head_checksum(head))
        return damaged(err, path, 0, "the checksum of its head differs");
    if (!memchr(head->folder, 0, sizeof head->folder) || strchr(head->folder, '/'))
        return damaged(err, path, 0, "its folder of parts has no name that can be");
    if (head->version != PARTS_VERSION)
        return brg_error_set(err, -EMEDIUMTYPE, "%s has format %u, this is for %u", path,
                             head->version, PARTS_VERSION);
    if (head->total_bytes != (uint64_t)st.st_size)
        return damaged(err, path, (uint64_t)st.st_size, "it has not the size that it had");
    return 0;
}

int parts_head_read(const char *path, struct parts_head *head, struct brg_error *err)
{
    int fd = store_io_open(path, O_RDONLY, 0);
    if (fd < 0)
        return store_failed(err, fd, path, -1, "open");
    int rc = parts_head_of(fd, path, head, err);
    close(fd);
    return rc;
}

static uint64_t n_pages(const struct parts_head *head)
{
    return (head->body_bytes + PARTS_PAGE - 1) / PARTS_PAGE;
}

static int check_table(struct parts_index *x, const char *path, struct brg_error *err)
{
    uint64_t at = PARTS_HEAD + x->head.body_bytes, left = 8 * n_pages(&x->head);
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    while (left) {
        size_t n = left < sizeof x->bytes ? (size_t)left : sizeof x->bytes;
        ssize_t got = store_io_read(x->fd, x->bytes, n, at);
        if (got < (ssize_t)n)
            return got < 0 ? store_failed(err, (int)got, path, -1, "read")
                           : damaged(err, path, at, "it ends too early");
        XXH3_64bits_update(&state, x->bytes, n);
        at += n;
        left -= n;
    }
    return XXH3_64bits_digest(&state) == x->head.table_checksum
               ? 0
               : damaged(err, path, PARTS_HEAD + x->head.body_bytes,
                         "the checksum of its table differs");
}

int parts_index_open(struct parts_index *x, const char *path, struct brg_error *err)
{
    x->page = UINT64_MAX;
    x->fd = store_io_open(path, O_RDONLY, 0);
    if (x->fd < 0)
        return store_failed(err, x->fd, path, -1, "open");
    int rc = parts_head_of(x->fd, path, &x->head, err);
    rc = rc ? rc : check_table(x, path, err);
    if (rc)
        parts_index_close(x);
    return rc;
}

void parts_index_close(struct parts_index *x)
{
    if (x->fd >= 0)
        close(x->fd);
    x->fd = -1;
}

static int load(struct parts_index *x, uint64_t page)
{
    uint64_t from = page * PARTS_PAGE, left = x->head.body_bytes - from, sum;
    size_t n = left < PARTS_PAGE ? (size_t)left : PARTS_PAGE;
    if (x->page == page)
        return 0;
    x->page = UINT64_MAX;
    ssize_t got = store_io_read(x->fd, x->bytes, n, PARTS_HEAD + from);
    if (got == (ssize_t)n)
        got = store_io_read(x->fd, &sum, 8, PARTS_HEAD + x->head.body_bytes + 8 * page);
    if (got < 0)
        return (int)got;
    if (got != 8 || sum != XXH3_64bits(x->bytes, n))
        return -EBADMSG;
    x->page = page;
    return 0;
}

static int get(struct parts_index *x, uint64_t at, void *out, size_t n)
{
    if (at + n > x->head.body_bytes)
        return -EBADMSG;
    while (n) {
        size_t in = (size_t)(at % PARTS_PAGE), some = n < PARTS_PAGE - in ? n : PARTS_PAGE - in;
        int rc = load(x, at / PARTS_PAGE);
        if (rc)
            return rc;
        memcpy(out, x->bytes + in, some);
        at += some;
        out = (char *)out + some;
        n -= some;
    }
    return 0;
}

int parts_index_extent(struct parts_index *x, uint64_t i, struct parts_extent *extent)
{
    return get(x, i * sizeof *extent, extent, sizeof *extent);
}

int parts_index_part(struct parts_index *x, uint64_t i, struct parts_part *part)
{
    uint64_t parts = x->head.n_extents * sizeof(struct parts_extent);
    return get(x, parts + i * sizeof *part, part, sizeof *part);
}

int parts_index_sum(struct parts_index *x, uint64_t i, uint64_t *sum)
{
    uint64_t sums = x->head.n_extents * sizeof(struct parts_extent) +
                    x->head.n_parts * sizeof(struct parts_part);
    return get(x, sums + 8 * i, sum, 8);
}

int parts_index_find(struct parts_index *x, uint64_t offset, uint64_t *i)
{
    uint64_t low = 0, high = x->head.n_extents;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        struct parts_extent extent;
        int rc = parts_index_extent(x, middle, &extent);
        if (rc)
            return rc;
        if (extent.offset + extent.bytes > offset)
            high = middle;
        else
            low = middle + 1;
    }
    *i = low;
    return 0;
}
