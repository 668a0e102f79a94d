/* stat in all its forms: a size includes what is pending, so that is written out first. */
#include "buffer/hooks.h"

#include <sys/sysmacros.h>

#include "base/real_stat.h"

static void settle(int fd)
{
    struct desc *d = file_enter(fd, NULL);
    if (!d)
        return;
    struct file *f = d->file;
    if (file_pending(f))
        file_drain(f);
    file_leave(f);
}

/* Whether the file that a call has just found is a buffered one: it is written out, ask again. */
static int is_buffered(const struct stat *st)
{
    int saved = errno;
    int is = S_ISREG(st->st_mode) && file_drain_inode(st->st_dev, st->st_ino);
    errno = saved;
    return is;
}

/* What was pending before the call may have been written between the call and our question. */
static int any_pending(void)
{
    return __builtin_expect(__atomic_load_n(&n_pending, __ATOMIC_SEQ_CST) != 0, 0);
}

#define BY_PATH(call)                          \
    int pending = any_pending(), rc = call;    \
    if (pending && rc == 0 && is_buffered(st)) \
        rc = call;                             \
    return rc

int hook_stat(const char *path, struct stat *st)
{
    BY_PATH(real_stat(path, st));
}
int hook_lstat(const char *path, struct stat *st)
{
    BY_PATH(real_lstat(path, st));
}
int hook_fstat(int fd, struct stat *st)
{
    if (IS_OURS(fd))
        settle(fd);
    return real_fstat(fd, st);
}
int hook_fstatat(int dirfd, const char *path, struct stat *st, int flags)
{
    BY_PATH(real_fstatat(dirfd, path, st, flags));
}
int hook___xstat(int version, const char *path, struct stat *st)
{
    BY_PATH(REAL(__xstat)(version, path, st));
}
int hook___lxstat(int version, const char *path, struct stat *st)
{
    BY_PATH(REAL(__lxstat)(version, path, st));
}
int hook___fxstat(int version, int fd, struct stat *st)
{
    if (IS_OURS(fd))
        settle(fd);
    return REAL(__fxstat)(version, fd, st);
}
int hook___fxstatat(int version, int dirfd, const char *path, struct stat *st, int flags)
{
    BY_PATH(REAL(__fxstatat)(version, dirfd, path, st, flags));
}
int hook_statx(int dirfd, const char *path, int flags, unsigned int mask, struct statx *stx)
{
    if (path && !*path && IS_OURS(dirfd))
        settle(dirfd);
    int pending = any_pending(), rc = REAL(statx)(dirfd, path, flags, mask, stx);
    if (rc == 0 && pending) {
        struct stat st = {.st_mode = S_IFREG,
                          .st_ino = stx->stx_ino,
                          .st_dev = makedev(stx->stx_dev_major, stx->stx_dev_minor)};
        if (is_buffered(&st))
            rc = REAL(statx)(dirfd, path, flags, mask, stx);
    }
    return rc;
}

#define BRG_SECTION_STAT
#define BRG_ALIAS BRG_DEFINE_ALIAS
#include "buffer/hooks.def"
