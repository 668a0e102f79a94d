/* Preloaded by a file system of FUSE: its reads take READS_US microseconds, fail with EINVAL beyond
 * READS_MOST bytes as some storage refuses O_DIRECT (what goes through the page cache is read in no
 * more than 128 KiB), and with EIO where they touch the byte READS_BAD. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static long setting(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text ? atol(text) : otherwise;
}

ssize_t pread(int fd, void *buf, size_t n, off_t at)
{
    long bad = setting("READS_BAD", -1);
    usleep((useconds_t)setting("READS_US", 0));
    if ((long)n > setting("READS_MOST", 1L << 40))
        errno = EINVAL;
    else if (bad >= at && bad < at + (long)n)
        errno = EIO;
    else
        return syscall(SYS_pread64, fd, buf, n, at);
    return -1;
}
ssize_t pread64(int fd, void *buf, size_t n, off64_t at) __attribute__((alias("pread")));
