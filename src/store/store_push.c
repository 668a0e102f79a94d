/* See store.h: bytes that are written slowly shall reach the disk as slowly, not all at the end. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "store/place.h"
#include "store/store_inside.h"
#include "store/store_io.h"

enum push_kind {
    PUSH_UNKNOWN,
    PUSH_RANGE, /* the kernel holds what was written, and can be told to send it on */
    PUSH_ALL    /* a process does (FUSE): it only hears of fsync */
};

/* 0 too where the file system knows nothing of it: then the sync at the end has more to do. */
static int push(int fd, const struct store_range *range, unsigned flags)
{
    if (!range->bytes || sync_file_range(fd, (off_t)range->at, (off_t)range->bytes,
                                         flags | SYNC_FILE_RANGE_WRITE) == 0)
        return 0;
    return errno == EIO || errno == ENOSPC || errno == EDQUOT ? -errno : 0;
}

int store_push(struct io_store *s, size_t bytes, uint64_t offset, struct brg_error *err)
{
    struct store_range *oldest = &s->pushed[s->pushes++ % STORE_PUSHES];
    int in_parts = s->token.layout == IO_PARTS, fd = in_parts ? s->part->data : s->fd;
    if (!s->sync)
        return 0;
    if (s->push_kind == PUSH_UNKNOWN)
        s->push_kind = place_kind(fd, NULL) == PLACE_FUSE ? PUSH_ALL : PUSH_RANGE;
    if (s->push_kind == PUSH_ALL) {
        int failed = fdatasync(fd) ? -errno : 0;
        return failed ? store_failed(err, failed, s->token.path, (int64_t)offset, "write") : 0;
    }
    int rc = push(fd, oldest, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WAIT_AFTER);
    *oldest = (struct store_range){in_parts ? s->part->at - bytes : offset, bytes};
    rc = rc ? rc : push(fd, oldest, 0);
    return rc ? store_failed(err, rc, s->token.path, (int64_t)offset, "write") : 0;
}
