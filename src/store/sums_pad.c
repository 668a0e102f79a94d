/* See sums_pad.h. */
#include "store/sums_pad.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "store/store_io.h"

void sums_pad_open(struct sums_pad *pad, char *page, const char *path)
{
    *pad = (struct sums_pad){.page = page, .path = path, .fd = -1};
}

void sums_pad_close(struct sums_pad *pad)
{
    if (pad->fd >= 0)
        close(pad->fd);
    pad->fd = -1;
}

static int need_file(struct sums_pad *pad)
{
    int fd = pad->fd < 0 ? store_io_open(pad->path, O_RDWR, 0) : pad->fd;
    pad->fd = fd < 0 ? -1 : fd;
    return fd < 0 ? fd : 0;
}

/* Two that make a file at once may both be told that it is there, O_EXCL or not, by a file system
 * whose clients look and make in two steps. */
int sums_pad_make(struct sums_pad *pad)
{
    int rc = need_file(pad);
    if (rc != -ENOENT)
        return rc;
    int fd = store_io_open(pad->path, O_RDWR | O_CREAT, 0600);
    if (fd < 0)
        return fd == -EEXIST ? need_file(pad) : fd;
    pad->fd = fd;
    if (pad->page)
        pad->page[SUMS_PAGE_FILE] = 1;
    /* Nodes that see it empty first may go on doing so for a while. */
    return pad->page ? 0 : store_io_write(fd, "", 1, SUMS_SHEET - 1, NULL);
}

int sums_pad_put(struct sums_pad *pad, const void *bytes, size_t n, uint64_t at)
{
    if (pad->page && at < SUMS_PAGE) {
        if (at >= SUMS_SHEET)
            pad->page[SUMS_PAGE_MORE] = 1;
        memcpy(pad->page + at, bytes, n);
        return 0;
    }
    int rc = pad->page ? sums_pad_make(pad) : need_file(pad);
    return rc ? rc : store_io_write(pad->fd, bytes, n, at, NULL);
}

int sums_pad_get(struct sums_pad *pad, void *bytes, size_t n, uint64_t at)
{
    if (pad->page && at < SUMS_PAGE) {
        memcpy(bytes, pad->page + at, n);
        return 0;
    }
    int is_there = !pad->page || pad->page[SUMS_PAGE_FILE], rc = is_there ? need_file(pad) : 0;
    ssize_t got = rc || !is_there ? rc : store_io_read(pad->fd, bytes, n, at);
    if (got < 0)
        return (int)got;
    memset((char *)bytes + got, 0, n - (size_t)got);
    return 0;
}
