/* See store_io.h. */
#include "store/store_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/error.h"
#include "base/io.h"
#include "world/fault.h"
#include "store/store_inside.h"

int store_failed(struct brg_error *err, int code, const char *path, int64_t offset,
                 const char *verb)
{
    if (offset < 0)
        brg_error_system(err, code, "cannot %s %s", verb, path);
    else
        brg_error_system(err, code, "cannot %s %s at byte %lld", verb, path, (long long)offset);
    if (err) {
        err->offset = offset;
        snprintf(err->path, sizeof err->path, "%s", path);
    }
    return code;
}

void store_name(char name[STORE_NAME_BYTES], const char *path, const char *suffix)
{
    snprintf(name, STORE_NAME_BYTES, "%s%s", path, suffix);
}

int store_io_open(const char *path, int flags, unsigned mode)
{
    if ((flags & O_ACCMODE) != O_RDONLY && io_fault_counted(IO_FAULT_OPEN))
        return -EACCES;
    int fd = open(path, flags | O_CLOEXEC, mode);
    return fd < 0 ? -errno : fd;
}

int store_io_again(int fd)
{
    int again = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return again < 0 ? -errno : again;
}

/* Past this node's caches, where a network file system has some. */
static int ask(int fd, const char *path, unsigned mask, struct statx *now)
{
    return path ? statx(AT_FDCWD, path, AT_STATX_FORCE_SYNC, mask, now)
                : statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, mask, now);
}

ssize_t store_io_read(int fd, void *buf, size_t n, uint64_t offset)
{
    struct statx now;
    ssize_t got = brg_io_pread(fd, buf, n, offset);
    if (got < 0 || (size_t)got == n || ask(fd, NULL, STATX_SIZE, &now) ||
        now.stx_size <= offset + (uint64_t)got)
        return got;
    ssize_t rest = brg_io_pread(fd, (char *)buf + got, n - (size_t)got, offset + (uint64_t)got);
    return rest < 0 ? rest : got + rest;
}

static void take(const struct statx *now, struct stat *st)
{
    *st = (struct stat){.st_dev = makedev(now->stx_dev_major, now->stx_dev_minor),
                        .st_ino = now->stx_ino,
                        .st_mode = now->stx_mode,
                        .st_nlink = now->stx_nlink,
                        .st_uid = now->stx_uid,
                        .st_gid = now->stx_gid,
                        .st_mtim = {now->stx_mtime.tv_sec, now->stx_mtime.tv_nsec},
                        .st_size = (off_t)now->stx_size};
}

int store_io_stat(int fd, const char *path, struct stat *st)
{
    struct statx now;
    if (ask(fd, path, STATX_BASIC_STATS, &now))
        return -errno;
    take(&now, st);
    return 0;
}

int store_io_stat_link(const char *path, struct stat *st)
{
    struct statx now;
    if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &now))
        return -errno;
    take(&now, st);
    return 0;
}

static ssize_t faulty_pwrite(int fd, const void *buf, size_t n, off_t offset)
{
    if (io_fault_at(IO_FAULT_SHORT, UINT64_MAX) && n > io_fault_chosen.n)
        n = io_fault_chosen.n ? (size_t)io_fault_chosen.n : 1;
    if (io_fault_at(IO_FAULT_EINTR, UINT64_MAX) && io_fault_add(1) % 2 == 0) {
        errno = EINTR;
        return -1;
    }
    return pwrite(fd, buf, n, offset);
}

/* How many of `bytes` a chosen fault lets through, and what it says to the rest. */
static size_t before_fault(size_t bytes, int *code)
{
    static const struct {
        enum io_fault_point point;
        int code;
    } faults[] = {{IO_FAULT_WRITE, -ENOSPC}, {IO_FAULT_QUOTA, -EDQUOT}, {IO_FAULT_EIO, -EIO}};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        if (!io_fault_at(faults[i].point, UINT64_MAX))
            continue;
        uint64_t before = io_fault_add(bytes), n = io_fault_chosen.n;
        if (before + bytes > n) {
            *code = faults[i].code;
            return before < n ? (size_t)(n - before) : 0;
        }
    }
    return bytes;
}

uint64_t store_io_limit(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX
                                                                              : limit.rlim_cur;
}

int store_io_write(int fd, const void *buf, size_t bytes, uint64_t offset, size_t *done)
{
    return store_io_write_below(store_io_limit(), fd, buf, bytes, offset, done);
}

int store_io_write_below(uint64_t limit, int fd, const void *buf, size_t bytes, uint64_t offset,
                         size_t *done)
{
    int cut = 0, rc;
    size_t n = bytes, put = 0;
    if (offset + n > limit) {
        n = offset < limit ? (size_t)(limit - offset) : 0;
        cut = -EFBIG;
    }
    if (io_fault_chosen.point)
        n = before_fault(n, &cut);
    rc = brg_io_pwrite_by(io_fault_chosen.point ? faulty_pwrite : pwrite, fd, buf, n, offset, &put);
    if (done)
        *done = put;
    return rc ? rc : cut;
}

int store_io_plain(void)
{
    return !io_fault_chosen.point && store_io_limit() == UINT64_MAX;
}

int store_io_resize(int fd, uint64_t size)
{
    if (size > store_io_limit())
        return -EFBIG;
    return ftruncate(fd, (off_t)size) ? -errno : 0;
}

int store_io_sync(int fd)
{
    if (io_fault_counted(IO_FAULT_FSYNC))
        return -EIO;
    return fsync(fd) ? -errno : 0;
}

int store_io_close(int fd)
{
    int rc = close(fd) ? -errno : 0;
    return !rc && io_fault_counted(IO_FAULT_CLOSE) ? -EDQUOT : rc;
}

int store_io_rename(const char *from, const char *to, int replace)
{
    if (io_fault_counted(IO_FAULT_RENAME))
        return -EIO;
    if (replace)
        return rename(from, to) ? -errno : 0;
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    /* A second name is refused where the name is taken, on every file system. */
    if (link(from, to))
        return -errno;
    return unlink(from) ? -errno : 0;
}
