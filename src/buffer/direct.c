/* See direct.h. */
#include "buffer/direct.h"
#include "buffer/inode.h"
#include "buffer/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define CACHESTAT 451 /* of Linux 6.5 */

void direct_opened(struct file *f, int fd)
{
    f->on_fuse = inode_is_on_fuse(fd, f->dev) != 0;
    f->past_cache = f->on_fuse && f->rule.direct;
}

/* Whether the page cache has half of it, as far as the file goes; no where the kernel is too old to
 * say. */
static int is_cached(int fd, uint64_t at, uint64_t n)
{
    uint64_t size = inode_size(fd);
    if (at >= size)
        return 1;
    n = size - at < n ? size - at : n;
    struct {
        uint64_t at, n;
    } range = {at, n};
    struct {
        uint64_t cached, dirty, writeback, evicted, recently;
    } found = {0};
    if (sys_call(CACHESTAT, fd, (long)&range, (long)&found, 0, 0, 0) < 0)
        return 0;
    return found.cached * (uint64_t)getpagesize() * 2 >= n;
}

static int set_flag(const struct file *f, int fd, int on)
{
    int flags = sys_fcntl(fd, F_GETFL, 0);
    if (flags < 0 || !file_is(f, fd))
        return 0;
    int now = on ? flags | O_DIRECT : flags & ~O_DIRECT;
    return now == flags || sys_fcntl(fd, F_SETFL, now) >= 0;
}

int direct_begin(struct file *f, struct desc *d, int fd, const struct read_block *r)
{
    if (!f->past_cache || d->mode != O_RDONLY || is_cached(fd, r->start, r->want))
        return 0;
    /* The last to leave clears the flag, and whoever sets it has not left: it never stays. */
    if (__atomic_fetch_add(&d->n_direct, 1, __ATOMIC_SEQ_CST) == 0 && !set_flag(f, fd, 1)) {
        f->past_cache = 0;
        direct_end(f, d, fd);
        return 0;
    }
    return 1;
}

void direct_end(const struct file *f, struct desc *d, int fd)
{
    if (__atomic_sub_fetch(&d->n_direct, 1, __ATOMIC_SEQ_CST) == 0)
        set_flag(f, fd, 0);
}

int direct_refused(struct file *f, long r)
{
    if (r != -EINVAL || !f->rule.direct)
        return 0;
    f->past_cache = 0;
    while (f->n_busy)
        file_wait(f);
    return 1;
}
