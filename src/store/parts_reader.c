/* See parts.h: reading a file of parts, by any number of ranks. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/io.h"
#include "store/parts.h"
#include "store/store_io.h"
#include "store/xxh3.h"

int parts_reader_open(struct parts_reader *r, const char *path, struct brg_error *err)
{
    const char *slash = strrchr(path, '/');
    int rc = parts_index_open(&r->index, path, err);
    r->fd = -1;
    if (rc)
        return rc;
    snprintf(r->folder, sizeof r->folder, "%.*s%s", slash ? (int)(slash - path) + 1 : 0, path,
             r->index.head.folder);
    return 0;
}

void parts_reader_close(struct parts_reader *r)
{
    if (r->fd >= 0)
        close(r->fd);
    r->fd = -1;
    parts_index_close(&r->index);
}

int parts_reader_use(struct parts_reader *r, uint32_t part, struct brg_error *err)
{
    char name[PARTS_NAME];
    if (r->fd >= 0 && r->open == part)
        return 0;
    int rc = parts_index_part(&r->index, part, &r->part);
    parts_name(name, r->folder, r->part.number, "");
    int fd = rc ? rc : store_io_open(name, O_RDONLY, 0);
    if (fd < 0)
        return store_failed(err, fd, name, -1, "open the part");
    if (r->fd >= 0)
        close(r->fd);
    r->fd = fd;
    r->open = part;
    return 0;
}

static int failed(struct parts_reader *r, int code, uint64_t at, struct brg_error *err)
{
    char name[PARTS_NAME];
    parts_name(name, r->folder, r->part.number, "");
    if (code != -EBADMSG)
        return store_failed(err, code, name, (int64_t)at, "read the part");
    brg_error_set(err, code, "the part %s does not match its checksum in the block at byte %llu",
                  name, (unsigned long long)at);
    if (err) {
        err->offset = (int64_t)at;
        snprintf(err->path, sizeof err->path, "%.1023s", name);
    }
    return code;
}

int parts_check_block(struct parts_reader *r, uint64_t b, struct brg_error *err)
{
    char bytes[16 << 10];
    uint64_t from = b * r->index.head.block_bytes, to = from + r->index.head.block_bytes, known;
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    to = to < r->part.bytes ? to : r->part.bytes;
    int rc =
        b < r->part.n_sums ? parts_index_sum(&r->index, r->part.first_sum + b, &known) : -EBADMSG;
    for (uint64_t at = from; !rc && at < to;) {
        size_t n = to - at < sizeof bytes ? (size_t)(to - at) : sizeof bytes;
        ssize_t got = store_io_read(r->fd, bytes, n, at);
        if (got < (ssize_t)n)
            rc = got < 0 ? (int)got : -EBADMSG;
        xxh3_update(&state, bytes, n);
        at += n;
    }
    if (!rc && known != xxh3_kept(XXH3_64bits_digest(&state)))
        rc = -EBADMSG;
    return rc ? failed(r, rc, from, err) : 0;
}

static int read_extent(struct parts_reader *r, const struct parts_extent *e, char *to, size_t n,
                       uint64_t skip, int verify, struct brg_error *err)
{
    uint64_t at = e->at + skip, block = r->index.head.block_bytes;
    int rc = parts_reader_use(r, e->part, err);
    if (rc)
        return rc;
    for (uint64_t b = at / block; verify && !rc && b * block < at + n; b++)
        rc = parts_check_block(r, b, err);
    if (rc)
        return rc;
    ssize_t got = store_io_read(r->fd, to, n, at);
    return got < (ssize_t)n ? failed(r, got < 0 ? (int)got : -EIO, at, err) : 0;
}

int parts_read(struct parts_reader *r, void *buf, size_t bytes, uint64_t offset, int verify,
               size_t *got, struct brg_error *err)
{
    uint64_t size = r->index.head.size, i;
    char *to = buf;
    size_t n = offset >= size ? 0 : bytes < size - offset ? bytes : (size_t)(size - offset);
    *got = n;
    int rc = n ? parts_index_find(&r->index, offset, &i) : 0;
    while (!rc && n) {
        struct parts_extent e = {.offset = size};
        if (i < r->index.head.n_extents)
            rc = parts_index_extent(&r->index, i, &e);
        if (rc)
            break;
        size_t some = n;
        if (offset < e.offset) { /* a hole */
            some = n < e.offset - offset ? n : (size_t)(e.offset - offset);
            memset(to, 0, some);
        } else {
            uint64_t skip = offset - e.offset;
            some = n < e.bytes - skip ? n : (size_t)(e.bytes - skip);
            rc = read_extent(r, &e, to, some, skip, verify, err);
            if (rc)
                return rc;
            i++;
        }
        to += some;
        offset += some;
        n -= some;
    }
    return rc ? store_failed(err, rc, r->folder, (int64_t)offset, "read the index of") : 0;
}
