/* Whole reads and writes at an offset. */
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

ssize_t brg_io_pread(int fd, void *buf, size_t n, uint64_t offset)
{
    size_t got = 0;
    while (got < n) {
        ssize_t r = pread(fd, (char *)buf + got, n - got, (off_t)(offset + got));
        if (r == 0)
            break;
        if (r < 0 && errno != EINTR)
            return -errno;
        if (r > 0)
            got += (size_t)r;
    }
    return (ssize_t)got;
}

int brg_io_pwrite_by(brg_io_pwrite_call *call, int fd, const void *buf, size_t n, uint64_t offset,
                     size_t *done)
{
    size_t put = 0;
    int rc = 0;
    while (put < n && rc == 0) {
        ssize_t r = call(fd, (const char *)buf + put, n - put, (off_t)(offset + put));
        if (r > 0)
            put += (size_t)r;
        else if (r == 0)
            rc = -ENOSPC; /* no progress and no error: nothing more will fit */
        else if (errno != EINTR)
            rc = -errno;
    }
    if (done)
        *done = put;
    return rc;
}

int brg_io_pwrite(int fd, const void *buf, size_t n, uint64_t offset, size_t *done)
{
    return brg_io_pwrite_by(pwrite, fd, buf, n, offset, done);
}

int brg_io_open_folder_of(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    int n = slash ? (int)(slash - path) + 1 : 1;
    if (snprintf(folder, sizeof folder, "%.*s", n, slash ? path : ".") >= (int)sizeof folder)
        return -ENAMETOOLONG;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int brg_io_sync_folder(int fd)
{
    /* Some file systems cannot sync a directory and say EINVAL: then rename is all there is. */
    int rc = fsync(fd) != 0 && errno != EINVAL ? -errno : 0;
    close(fd);
    return rc;
}

int brg_io_sync_folder_of(const char *path)
{
    int fd = brg_io_open_folder_of(path);
    return fd < 0 ? fd : brg_io_sync_folder(fd);
}
