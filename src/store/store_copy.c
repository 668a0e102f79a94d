/* The bytes of the file that is there, in the one that will take its place. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "store/store_inside.h"
#include "store/store_io.h"

static int all_zeros(const char *buf, size_t n)
{
    return n == 0 || (buf[0] == 0 && memcmp(buf, buf + 1, n - 1) == 0);
}

/* [at, end) of the old file, which has data there; where it may not (`holes`), zeros are left out.
 * 0, or -errno with *at where it failed. */
static int copy_data(int from, int to, uint64_t *at, uint64_t end, int holes)
{
    char buf[64 << 10];
    int rc = 0, by_kernel = !holes;
    while (!rc && *at < end) {
        loff_t in = (loff_t)*at, out = in;
        ssize_t n = by_kernel ? copy_file_range(from, &in, to, &out, end - *at, 0) : -1;
        if (n <= 0 && by_kernel && errno != ENOSPC) {
            by_kernel = 0;
            continue;
        }
        if (!by_kernel) {
            n = store_io_read(from, buf, end - *at < sizeof buf ? end - *at : sizeof buf, *at);
            rc = n < 0 ? (int)n : 0;
            if (!rc && !(holes && all_zeros(buf, (size_t)n)))
                rc = store_io_write(to, buf, (size_t)n, *at, NULL);
        } else if (n < 0)
            rc = -errno;
        if (n == 0)
            rc = -EIO; /* it became shorter meanwhile */
        *at += rc ? 0 : (uint64_t)n;
    }
    return rc;
}

/* Shared with it where the file system can. Holes stay holes, or a sparse file would fill the
 * disk. */
static int copy_from(const struct store_token *token, int from, struct brg_error *err)
{
    uint64_t at = 0;
    int rc = 0;
    if (ioctl(token->lock, FICLONE, from) == 0)
        return 0;
    rc = store_io_resize(token->lock, token->size);
    /* Some network file systems take all of a file for data, also of this one, which has none. */
    int untold = lseek(token->lock, 0, SEEK_DATA) == 0;
    while (!rc && at < token->size) {
        off_t data = lseek(from, (off_t)at, SEEK_DATA), end;
        if (data < 0 && errno == ENXIO)
            break; /* the rest is a hole */
        at = data < 0 ? at : (uint64_t)data;
        end = data < 0 ? -1 : lseek(from, data, SEEK_HOLE);
        end = end <= (off_t)at || (uint64_t)end > token->size ? (off_t)token->size : end;
        rc = copy_data(from, token->lock, &at, (uint64_t)end, untold);
    }
    return rc ? store_failed(err, rc, token->path, (int64_t)at, "copy") : 0;
}

int store_copy_old(const struct store_token *token, struct brg_error *err)
{
    int from = store_io_open(token->path, O_RDONLY, 0);
    int rc =
        from < 0 ? store_failed(err, from, token->path, -1, "read") : copy_from(token, from, err);
    if (from >= 0)
        close(from);
    return rc;
}
