/* Calls before which what is pending must be in the file. */
#include "buffer/hooks.h"

#include <unistd.h>

/* Writes out the file of fd; 0, or -errno of what failed in the background. `changes`: what was
 * read ahead is not used any more. */
static int settle(int fd, int changes)
{
    int err;
    if (!IS_OURS(fd))
        return 0;
    struct desc *d = file_enter(fd, &err);
    if (!d)
        return -err;
    struct file *f = d->file;
    f->record->syncs++;
    if (file_drain(f) == 0) {
        err = -file_take_error(f);
        if (changes && !err)
            file_discard_reads(f, 0, UINT64_MAX);
    }
    file_leave(f);
    return -err;
}

/* A call on fd: the error of the background, or the call's own result. */
#define AFTER_SETTLING(changes, call)         \
    int err = settle(fd, changes), rc = call; \
    return rc == 0 && err ? (int)told(err) : rc

int hook_fsync(int fd)
{
    AFTER_SETTLING(1, REAL(fsync)(fd));
}
int hook_fdatasync(int fd)
{
    AFTER_SETTLING(1, REAL(fdatasync)(fd));
}
int hook_sync_file_range(int fd, off_t at, off_t n, unsigned flags)
{
    AFTER_SETTLING(0, REAL(sync_file_range)(fd, at, n, flags));
}
int hook_syncfs(int fd)
{
    file_drain_all(0);
    AFTER_SETTLING(0, REAL(syncfs)(fd));
}
void hook_sync(void)
{
    file_drain_all(0);
    REAL(sync)();
}

/* Changes of the file: not made when what was written before has failed. */
int hook_ftruncate(int fd, off_t n)
{
    int err = settle(fd, 1);
    return err ? (int)told(err) : REAL(ftruncate)(fd, n);
}
int hook_fallocate(int fd, int mode, off_t at, off_t n)
{
    int err = settle(fd, 1);
    return err ? (int)told(err) : REAL(fallocate)(fd, mode, at, n);
}
int hook_posix_fallocate(int fd, off_t at, off_t n)
{
    int err = settle(fd, 1);
    return err ? -err : REAL(posix_fallocate)(fd, at, n);
}
int hook_posix_fadvise(int fd, off_t at, off_t n, int advice)
{
    if (IS_OURS(fd)) {
        int err = settle(fd, advice == 4 /* POSIX_FADV_DONTNEED */);
        if (err)
            return -err;
    }
    return REAL(posix_fadvise)(fd, at, n, advice);
}

/* Reads ahead of the file with that path are forgotten, before and after it changes. */
static void forget_reads(const char *path)
{
    struct stat st;
    if (__atomic_load_n(&n_files, __ATOMIC_RELAXED) && sys_stat(path, &st) == 0)
        __atomic_add_fetch(&epoch, 1, __ATOMIC_ACQ_REL);
}
int hook_truncate(const char *path, off_t n)
{
    file_drain_all(0);
    int rc = REAL(truncate)(path, n);
    forget_reads(path);
    return rc;
}

/* Others find the file under its new name, with all that was written. */
int hook_rename(const char *from, const char *to)
{
    file_drain_all(0);
    return REAL(rename)(from, to);
}
int hook_renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    file_drain_all(0);
    return REAL(renameat)(from_fd, from, to_fd, to);
}
int hook_renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
    file_drain_all(0);
    return REAL(renameat2)(from_fd, from, to_fd, to, flags);
}
int hook_link(const char *from, const char *to)
{
    file_drain_all(0);
    return REAL(link)(from, to);
}
int hook_linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
    file_drain_all(0);
    return REAL(linkat)(from_fd, from, to_fd, to, flags);
}

/* A time that the program sets must not be changed by a write that was before it; nor may a write
 * clear the set-user-ID bit that it sets. */
int hook_futimens(int fd, const struct timespec times[2])
{
    AFTER_SETTLING(0, REAL(futimens)(fd, times));
}
int hook_futimes(int fd, const struct timeval times[2])
{
    AFTER_SETTLING(0, REAL(futimes)(fd, times));
}
int hook_fchmod(int fd, mode_t mode)
{
    AFTER_SETTLING(0, REAL(fchmod)(fd, mode));
}
int hook_fchown(int fd, uid_t user, gid_t group)
{
    AFTER_SETTLING(0, REAL(fchown)(fd, user, group));
}
int hook_utimensat(int dirfd, const char *path, const struct timespec times[2], int flags)
{
    file_drain_all(0);
    return REAL(utimensat)(dirfd, path, times, flags);
}
int hook_utimes(const char *path, const struct timeval times[2])
{
    file_drain_all(0);
    return REAL(utimes)(path, times);
}
int hook_lutimes(const char *path, const struct timeval times[2])
{
    file_drain_all(0);
    return REAL(lutimes)(path, times);
}
int hook_utime(const char *path, const struct utimbuf *times)
{
    file_drain_all(0);
    return REAL(utime)(path, times);
}

#define BRG_SECTION_SYNC
#define BRG_ALIAS BRG_DEFINE_ALIAS
#include "buffer/hooks.def"
