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

typedef ssize_t transfer(struct desc *d, const struct iovec *iov, int n, off_t at);

/* A call on what may be ours: its result, with errno, or REAL_CALL. */
static ssize_t ours(int fd, const struct iovec *iov, int n, off_t at, transfer *act)
{
    ssize_t done = 0;
    if (!IS_OURS(fd))
        return REAL_CALL;
    if (at < 0 && at != AT_POSITION)
        return told(-EINVAL);
    struct desc *d = enter(fd, &done);
    if (!d)
        return done < 0 ? -1 : REAL_CALL;
    ssize_t r = act(d, iov, n, at);
    return r == REAL_CALL ? r : told(r);
}
static ssize_t ours_of_one(int fd, const void *buf, size_t n, off_t at, transfer *act)
{
    struct iovec one = {(void *)buf, n};
    return ours(fd, &one, 1, at, act);
}

/* What is not ours goes on by one jump to onward_*: all else is in another function, so that this
 * one needs no frame on the stack. Before the real calls are known, that one is gone on to. */
#define HOOK(name, parameters, arguments, of_ours)                              \
    static __attribute__((noinline)) ssize_t name##_slowly parameters           \
    {                                                                           \
        ssize_t r = of_ours;                                                    \
        return r == REAL_CALL ? REAL(name) arguments : r;                       \
    }                                                                           \
    static ssize_t(*onward_##name) parameters = name##_slowly;                  \
    ssize_t hook_##name parameters                                              \
    {                                                                           \
        return IS_OURS(fd) ? name##_slowly arguments : onward_##name arguments; \
    }

/* An offset that a program gives: no negative one is AT_POSITION. */
static off_t given(off_t at)
{
    return at < 0 ? -1 : at;
}

HOOK(read, (int fd, void *buf, size_t n), (fd, buf, n),
     ours_of_one(fd, buf, n, AT_POSITION, file_read))
HOOK(write, (int fd, const void *buf, size_t n), (fd, buf, n),
     ours_of_one(fd, buf, n, AT_POSITION, file_write))
HOOK(pread, (int fd, void *buf, size_t n, off_t at), (fd, buf, n, at),
     ours_of_one(fd, buf, n, given(at), file_read))
HOOK(pwrite, (int fd, const void *buf, size_t n, off_t at), (fd, buf, n, at),
     ours_of_one(fd, buf, n, given(at), file_write))
HOOK(readv, (int fd, const struct iovec *iov, int n), (fd, iov, n),
     ours(fd, iov, n, AT_POSITION, file_read))
HOOK(writev, (int fd, const struct iovec *iov, int n), (fd, iov, n),
     ours(fd, iov, n, AT_POSITION, file_write))
HOOK(preadv, (int fd, const struct iovec *iov, int n, off_t at), (fd, iov, n, at),
     ours(fd, iov, n, given(at), file_read))
HOOK(pwritev, (int fd, const struct iovec *iov, int n, off_t at), (fd, iov, n, at),
     ours(fd, iov, n, given(at), file_write))

/* Of these, -1 is the position. */
static off_t given_or_position(off_t at)
{
    return at == -1 ? AT_POSITION : given(at);
}
static ssize_t ours_of_flags(int fd, const struct iovec *iov, int n, off_t at, int flags,
                             transfer *act)
{
    if (flags && left(fd, "preadv2 or pwritev2 with flags"))
        return -1;
    return ours(fd, iov, n, given_or_position(at), act);
}
HOOK(preadv2, (int fd, const struct iovec *iov, int n, off_t at, int flags),
     (fd, iov, n, at, flags), ours_of_flags(fd, iov, n, at, flags, file_read))
HOOK(pwritev2, (int fd, const struct iovec *iov, int n, off_t at, int flags),
     (fd, iov, n, at, flags), ours_of_flags(fd, iov, n, at, flags, file_write))

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
    file_drain(d->file);
    if (whence == SEEK_CUR)
        sys_call(SYS_lseek, d->fd, (long)d->position, SEEK_SET, 0, 0, 0);
    long r = sys_call(SYS_lseek, d->fd, at, whence, 0, 0, 0);
    if (r >= 0)
        d->position = (uint64_t)r;
    return r;
}

static off_t seek(struct desc *d, off_t at, int whence)
{
    d->file->record->seeks++;
    int64_t to = whence == SEEK_SET ? at : (int64_t)d->position + at;
    if ((whence != SEEK_SET && whence != SEEK_CUR) || to < 0 || to > ((int64_t)1 << 42) ||
        at > ((int64_t)1 << 42))
        return seek_by_kernel(d, at, whence);
    d->position = (uint64_t)to;
    return to;
}

static off_t seek_ours(int fd, off_t at, int whence)
{
    ssize_t done = 0;
    struct desc *d = enter(fd, &done);
    if (!d)
        return done < 0 ? -1 : REAL_CALL;
    struct file *f = d->file;
    off_t r = call_begin(d, CALL_POSITION);
    if (r == 0) {
        r = seek(d, at, whence);
        call_end(d, CALL_POSITION);
    }
    file_leave(f);
    return r == REAL_CALL ? r : told(r);
}
HOOK(lseek, (int fd, off_t at, int whence), (fd, at, whence), seek_ours(fd, at, whence))

void data_start(void)
{
#define ONWARD(name) \
    if (real.name)   \
    __atomic_store_n(&onward_##name, real.name, __ATOMIC_RELAXED)
    ONWARD(read);
    ONWARD(write);
    ONWARD(pread);
    ONWARD(pwrite);
    ONWARD(readv);
    ONWARD(writev);
    ONWARD(preadv);
    ONWARD(pwritev);
    ONWARD(preadv2);
    ONWARD(pwritev2);
    ONWARD(lseek);
}

#define BRG_SECTION_DATA
#define BRG_ALIAS BRG_DEFINE_ALIAS
#include "buffer/hooks.def"
