/* Reading a file whose end is not where this node's client of a network file system believes. */
#include "claim.h"
#include "store/store_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static off_t believed = -1; /* until the size is asked for, reads end here; -1: they do not */
static int calls, fails;

/* Instead of the C library's, for this program. */
ssize_t pread(int fd, void *buf, size_t n, off_t offset)
{
    calls++;
    if (fails) {
        errno = fails;
        return -1;
    }
    if (believed >= 0 && offset >= believed)
        return 0;
    if (believed >= 0 && offset + (off_t)n > believed)
        n = (size_t)(believed - offset);
    return syscall(SYS_pread64, fd, buf, n, offset);
}

static int asked; /* how often, and whether past the client's caches */

int statx(int fd, const char *path, int flags, unsigned mask, struct statx *st)
{
    int forced = (flags & AT_STATX_FORCE_SYNC) != 0;
    asked++;
    if (forced)
        believed = -1;
    return (int)syscall(SYS_statx, fd, path, flags, mask, st);
}

static void begins(off_t end)
{
    believed = end;
    calls = asked = fails = 0;
}

int main(void)
{
    char name[] = "/tmp/test_store_io.XXXXXX", text[16] = "";
    int fd = mkstemp(name);
    unlink(name);
    CHECK(fd >= 0 && write(fd, "0123456789", 10) == 10, "no file to read");

    begins(-1);
    CHECK(store_io_read(fd, text, 10, 0) == 10 && asked == 0, "whole: asked %d times", asked);
    begins(-1);
    CHECK(store_io_read(fd, text, 16, 4) == 6 && asked == 1, "to the end: asked %d times", asked);
    CHECK(calls == 2, "%d reads at the real end", calls);
    begins(4);
    CHECK(store_io_read(fd, text, 8, 2) == 8 && !memcmp(text, "23456789", 8), "stale: %.8s", text);
    begins(0);
    CHECK(store_io_read(fd, text, 1, 9) == 1 && text[0] == '9', "stale from the beginning");
    begins(4);
    CHECK(store_io_read(fd, text, 16, 2) == 8, "stale, and past the end");
    struct stat real, told;
    begins(4);
    CHECK(fstat(fd, &real) == 0 && store_io_stat(fd, NULL, &told) == 0, "no stat");
    CHECK(told.st_size == 10 && told.st_ino == real.st_ino && told.st_dev == real.st_dev &&
              told.st_mode == real.st_mode && told.st_nlink == real.st_nlink && believed < 0,
          "%ld bytes", (long)told.st_size);
    CHECK(store_io_stat(-1, "/nothing/here", &told) == -ENOENT, "of nothing");
    begins(-1);
    fails = EIO;
    CHECK(store_io_read(fd, text, 1, 0) == -EIO, "a failed read");
    close(fd);
    return failures != 0;
}
