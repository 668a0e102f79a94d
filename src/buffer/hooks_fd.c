/* What is done with descriptors: closed, duplicated, locked, asked for what we do not know. */
#include "buffer/hooks.h"

#include <string.h>
#include <unistd.h>

/* Somebody else may have written: what was read ahead before is not used. */
static void others_wrote(void)
{
    __atomic_add_fetch(&epoch, 1, __ATOMIC_ACQ_REL);
}

int hook_close(int fd)
{
    if (!IS_OURS(fd))
        return REAL(close)(fd);
    int err = file_closing(fd), rc = REAL(close)(fd);
    return rc == 0 && err ? (int)told(err) : rc;
}

int hook_dup(int fd)
{
    int to = REAL(dup)(fd);
    if (to >= 0 && IS_OURS(fd))
        file_duplicated(fd, to);
    return to;
}

/* What `to` is takes the place of what it was. */
void fd_before_onto(int fd, int to)
{
    if (fd != to && IS_OURS(to) && sys_fcntl(fd, F_GETFD, 0) >= 0)
        file_closing_untold(to); /* the report tells it, too */
}
static int onto(int fd, int to, int rc)
{
    if (rc >= 0 && fd != to && IS_OURS(fd))
        file_duplicated(fd, to);
    return rc;
}
int hook_dup2(int fd, int to)
{
    fd_before_onto(fd, to);
    return onto(fd, to, REAL(dup2)(fd, to));
}
int hook_dup3(int fd, int to, int flags)
{
    fd_before_onto(fd, to);
    return onto(fd, to, REAL(dup3)(fd, to, flags));
}

int hook_fcntl(int fd, int what, ...)
{
    va_list list;
    va_start(list, what);
    void *value = va_arg(list, void *);
    va_end(list);
    switch (what) {
    case F_GETFD:
    case F_SETFD: break;
    case F_GETFL: { /* what is opened with O_DIRECT is not ours: then we have set it */
        int ours = IS_OURS(fd), flags = REAL(fcntl)(fd, what);
        return ours && flags >= 0 ? flags & ~O_DIRECT : flags;
    }
    case F_DUPFD:
    case F_DUPFD_CLOEXEC: {
        int to = REAL(fcntl)(fd, what, value);
        if (to >= 0 && IS_OURS(fd))
            file_duplicated(fd, to);
        return to;
    }
    default:
        if (left(fd, "fcntl: a lock or a changed mode"))
            return -1;
    }
    return REAL(fcntl)(fd, what, value);
}

int hook_ioctl(int fd, unsigned long what, ...)
{
    va_list list;
    va_start(list, what);
    void *value = va_arg(list, void *);
    va_end(list);
    if (what != 0x5401 /* TCGETS: is it a terminal? */ && left(fd, "ioctl"))
        return -1;
    return REAL(ioctl)(fd, what, value);
}

static void closing_from(unsigned first, unsigned last)
{
    for (unsigned fd = first; fd <= last && fd < TABLE_FDS; fd++)
        if (IS_OURS((int)fd))
            file_closing_untold((int)fd);
}

void fd_before_close_range(unsigned first, unsigned last, int flags)
{
    if (!(flags & 4 /* CLOSE_RANGE_CLOEXEC */) && first <= last &&
        __atomic_load_n(&n_files, __ATOMIC_RELAXED))
        closing_from(first, last);
}
int hook_close_range(unsigned first, unsigned last, int flags)
{
    fd_before_close_range(first, last, flags);
    if (!REAL(close_range)) {
        errno = ENOSYS;
        return -1;
    }
    return REAL(close_range)(first, last, flags);
}

void hook_closefrom(int first)
{
    closing_from(first < 0 ? 0 : (unsigned)first, TABLE_FDS);
    if (REAL(closefrom))
        REAL(closefrom)(first);
}

int hook_flock(int fd, int what)
{
    others_wrote();
    return left(fd, "flock") ? -1 : REAL(flock)(fd, what);
}
int hook_lockf(int fd, int what, off_t n)
{
    others_wrote();
    return left(fd, "lockf") ? -1 : REAL(lockf)(fd, what, n);
}

int hook_daemon(int stay, int keep)
{
    for (int fd = 0; fd < 3; fd++)
        left(fd, "daemon");
    return REAL(daemon)(stay, keep);
}

#define BRG_SECTION_FD
#define BRG_ALIAS BRG_DEFINE_ALIAS
#include "buffer/hooks.def"
