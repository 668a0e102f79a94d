/* read, write, lseek and their kin. */
#include "buffer/hooks.h"

#include <pthread.h>
#include <unistd.h>

/* The desc of fd, locked; else the result of the call stands in *done, or the real call is due. */
static struct desc *enter(int fd, ssize_t *done)
{
    int err;
    if (!IS_OURS(fd))
        return NULL;
    pthread_testcancel(); /* as the real calls do */
    struct desc *d = file_enter(fd, &err);
    if (!d && err) {
        errno = err;
        *done = -1;
    }
    return d;
}

/* What is not ours goes straight on: the compiler makes a jump of it. */
#define BODY(fd, act, call)            \
    if (!IS_OURS(fd))                  \
        return call;                   \
    ssize_t done = 0;                  \
    struct desc *d = enter(fd, &done); \
    if (d) {                           \
        ssize_t r = act;               \
        if (r != REAL_CALL)            \
            return told(r);            \
    } else if (done < 0)               \
        return -1;                     \
    return call

ssize_t hook_read(int fd, void *buf, size_t n)
{
    struct iovec one = {buf, n};
    BODY(fd, file_read(d, &one, 1, AT_POSITION), REAL(read)(fd, buf, n));
}
ssize_t hook_write(int fd, const void *buf, size_t n)
{
    struct iovec one = {(void *)buf, n};
    BODY(fd, file_write(d, &one, 1, AT_POSITION), REAL(write)(fd, buf, n));
}
ssize_t hook_pread(int fd, void *buf, size_t n, off_t at)
{
    struct iovec one = {buf, n};
    if (at < 0 && IS_OURS(fd))
        return told(-EINVAL);
    BODY(fd, file_read(d, &one, 1, at), REAL(pread)(fd, buf, n, at));
}
ssize_t hook_pwrite(int fd, const void *buf, size_t n, off_t at)
{
    struct iovec one = {(void *)buf, n};
    if (at < 0 && IS_OURS(fd))
        return told(-EINVAL);
    BODY(fd, file_write(d, &one, 1, at), REAL(pwrite)(fd, buf, n, at));
}
ssize_t hook_readv(int fd, const struct iovec *iov, int n)
{
    BODY(fd, file_read(d, iov, n, AT_POSITION), REAL(readv)(fd, iov, n));
}
ssize_t hook_writev(int fd, const struct iovec *iov, int n)
{
    BODY(fd, file_write(d, iov, n, AT_POSITION), REAL(writev)(fd, iov, n));
}
ssize_t hook_preadv(int fd, const struct iovec *iov, int n, off_t at)
{
    if (at < 0 && IS_OURS(fd))
        return told(-EINVAL);
    BODY(fd, file_read(d, iov, n, at), REAL(preadv)(fd, iov, n, at));
}
ssize_t hook_pwritev(int fd, const struct iovec *iov, int n, off_t at)
{
    if (at < 0 && IS_OURS(fd))
        return told(-EINVAL);
    BODY(fd, file_write(d, iov, n, at), REAL(pwritev)(fd, iov, n, at));
}
ssize_t hook_preadv2(int fd, const struct iovec *iov, int n, off_t at, int flags)
{
    if (flags && left(fd, "preadv2 with flags"))
        return -1;
    if (at < -1 && IS_OURS(fd))
        return told(-EINVAL);
    BODY(fd, file_read(d, iov, n, at == -1 ? AT_POSITION : at),
         REAL(preadv2)(fd, iov, n, at, flags));
}
ssize_t hook_pwritev2(int fd, const struct iovec *iov, int n, off_t at, int flags)
{
    if (flags && left(fd, "pwritev2 with flags"))
        return -1;
    if (at < -1 && IS_OURS(fd))
        return told(-EINVAL);
    BODY(fd, file_write(d, iov, n, at == -1 ? AT_POSITION : at),
         REAL(pwritev2)(fd, iov, n, at, flags));
}
ssize_t hook___read_chk(int fd, void *buf, size_t n, size_t room)
{
    return n > room ? REAL(__read_chk)(fd, buf, n, room) : hook_read(fd, buf, n);
}
ssize_t hook___pread_chk(int fd, void *buf, size_t n, off_t at, size_t room)
{
    return n > room ? REAL(__pread_chk)(fd, buf, n, at, room) : hook_pread(fd, buf, n, at);
}

/* Where the kernel must be asked: what is pending is in the file first. */
static off_t seek_by_kernel(struct desc *d, off_t at, int whence)
{
    struct file *f = d->file;
    if (file_drain(f))
        return REAL_CALL;
    if (whence == SEEK_CUR)
        sys_call(SYS_lseek, d->fd, (long)d->position, SEEK_SET, 0, 0, 0);
    long r = sys_call(SYS_lseek, d->fd, at, whence, 0, 0, 0);
    if (r >= 0)
        d->position = (uint64_t)r;
    return r;
}

static off_t seek(struct desc *d, off_t at, int whence)
{
    struct file *f = d->file;
    while (d->busy)
        if (file_wait(f))
            return REAL_CALL;
    f->record->seeks++;
    int64_t to = whence == SEEK_SET ? at : (int64_t)d->position + at;
    if ((whence != SEEK_SET && whence != SEEK_CUR) || to < 0 || to > ((int64_t)1 << 42) ||
        at > ((int64_t)1 << 42))
        return seek_by_kernel(d, at, whence);
    d->position = (uint64_t)to;
    return to;
}

off_t hook_lseek(int fd, off_t at, int whence)
{
    if (!IS_OURS(fd))
        return REAL(lseek)(fd, at, whence);
    ssize_t done = 0;
    struct desc *d = enter(fd, &done);
    if (d) {
        struct file *f = d->file;
        off_t r = seek(d, at, whence);
        file_leave(f);
        if (r != REAL_CALL)
            return told(r);
    } else if (done < 0)
        return -1;
    return REAL(lseek)(fd, at, whence);
}

#define BRG_SECTION_DATA
#define BRG_ALIAS BRG_DEFINE_ALIAS
#include "buffer/hooks.def"
