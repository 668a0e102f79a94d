/* See store.h: bytes out of one file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/io.h"
#include "store/store_inside.h"
#include "store/store_io.h"
#include "world/fault.h"

static int read_parts(struct io_store *s, void *buf, size_t bytes, uint64_t offset, size_t *got,
                      struct brg_error *err)
{
    int rc = 0;
    if (!s->reader) {
        s->reader = malloc(sizeof *s->reader);
        if (!s->reader)
            return brg_error_set(err, -ENOMEM, "no memory for an index of parts");
        rc = parts_reader_open(s->reader, s->token.path, err);
        if (rc) {
            free(s->reader);
            s->reader = NULL;
        }
    }
    if (rc)
        return rc;
    if (s->reader->index.head.id != s->token.id)
        return store_is_another(&s->token, err);
    if (io_fault_at(IO_FAULT_READ, s->read + bytes))
        return store_failed(err, -EIO, s->token.path, (int64_t)offset, "read");
    rc = parts_read(s->reader, buf, bytes, offset, s->verify, got, err);
    s->read += rc ? 0 : *got;
    return rc;
}

int store_read(struct io_store *s, void *buf, size_t bytes, uint64_t offset, size_t *got,
               struct brg_error *err)
{
    if (s->token.layout == IO_PARTS)
        return read_parts(s, buf, bytes, offset, got, err);
    int rc = store_need_file(s, err);
    if (rc)
        return rc;
    io_fault_step();
    ssize_t n = io_fault_at(IO_FAULT_READ, s->read + bytes)
                    ? -EIO
                    : store_io_read(s->fd, buf, bytes, offset);
    if (n < 0) /* EBADF: opened to be written only */
        return store_failed(err, n == -EBADF ? -EACCES : (int)n, s->token.path, (int64_t)offset,
                            "read");
    s->read += (size_t)n;
    rc = s->verify ? store_check(s, buf, (size_t)n, offset, err) : 0;
    if (rc == 0)
        *got = (size_t)n;
    return rc;
}

int store_read_all(struct io_store *s, void *buf, size_t bytes, uint64_t offset,
                   struct brg_error *err)
{
    size_t got = 0;
    int rc = store_read(s, buf, bytes, offset, &got, err);
    if (!rc && got < bytes) {
        rc = brg_error_set(err, -ENODATA, "the file ends before byte %llu",
                           (unsigned long long)(offset + bytes));
        err->offset = (int64_t)(offset + got);
    }
    return rc;
}

int store_reads_raw(const struct io_store *s)
{
    return s->token.layout == IO_SHARED && !s->async;
}

int store_read_raw(struct io_store *s, void *buf, size_t bytes, uint64_t offset,
                   struct brg_error *err)
{
    int rc = store_need_file(s, err);
    if (rc)
        return rc;
    ssize_t got = store_io_read(s->fd, buf, bytes, offset);
    if (got < 0)
        return store_failed(err, (int)got, s->token.path, (int64_t)offset, "read");
    memset((char *)buf + got, 0, bytes - (size_t)got);
    return 0;
}
