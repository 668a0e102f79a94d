/* POSIX: each task's own system calls, as IOR makes them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ior.h"

struct file {
    int fd, single;
    char path[PATH_ROOM];
};

static int failed(char *why, const char *path, const char *call)
{
    return why_not(why, "%s: %s: %s", path, call, strerror(errno));
}

static const char *posix_refuse(const struct test *t, const struct way *way)
{
    if (*way->hints)
        return "POSIX has no hints";
    return t->o.direct && t->o.transfer % 512 ? "past the page cache (-B) go multiples of 512 bytes"
                                              : NULL;
}

/* Several that create a file at once meet EEXIST on some file systems: then it is there. */
static int open_or_create(const char *path, int flags)
{
    int fd = open(path, flags, 0664);
    return fd < 0 && errno == EEXIST ? open(path, flags & ~O_CREAT) : fd;
}

static int posix_open(const struct target *target, void **file, char *why)
{
    const struct options *o = &target->t->o;
    struct file *f = calloc(1, sizeof *f);
    if (!f)
        return why_not(why, "no memory");
    int flags = O_CLOEXEC | (target->writing ? O_RDWR | O_CREAT : O_RDONLY);
    f->single = o->single_attempt;
    snprintf(f->path, sizeof f->path, "%s", target->path);
    f->fd = open_or_create(f->path, flags | (o->direct ? O_DIRECT : 0));
    if (f->fd < 0) {
        failed(why, f->path, o->direct ? "opening past the page cache (-B)" : "opening");
        free(f);
        return -1;
    }
    *file = f;
    return 0;
}

static int posix_move(void *file, int writing, char *buf, int64_t bytes, int64_t offset, char *why)
{
    struct file *f = file;
    while (bytes) {
        ssize_t n = writing ? pwrite(f->fd, buf, (size_t)bytes, offset)
                            : pread(f->fd, buf, (size_t)bytes, offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return failed(why, f->path, writing ? "writing" : "reading");
        if (n == 0)
            return why_not(why, "%s: ends at %lld; %lld bytes from there on should follow", f->path,
                           (long long)offset, (long long)bytes);
        if (n < bytes && f->single)
            return why_not(why, "%s: offset %lld: %zd of %lld bytes in one call (-x)", f->path,
                           (long long)offset, n, (long long)bytes);
        buf += n;
        offset += n;
        bytes -= n;
    }
    return 0;
}

static int posix_sync(void *file, char *why)
{
    struct file *f = file;
    return fsync(f->fd) == 0 ? 0 : failed(why, f->path, "fsync");
}

static int posix_close(void *file, char *why)
{
    struct file *f = file;
    int rc = close(f->fd) == 0 ? 0 : failed(why, f->path, "closing");
    free(f);
    return rc;
}

int posix_size(const char *path, int64_t *bytes, char *why)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return failed(why, path, "its size");
    *bytes = st.st_size;
    return 0;
}

int posix_remove(const char *path, char *why)
{
    return unlink(path) == 0 || errno == ENOENT ? 0 : failed(why, path, "removing");
}

const struct back_end back_end_posix = {.name = "POSIX",
                                        .help = "system calls; each task its own bytes",
                                        .refuse = posix_refuse,
                                        .open = posix_open,
                                        .move = posix_move,
                                        .sync = posix_sync,
                                        .close = posix_close,
                                        .size = posix_size,
                                        .remove = posix_remove};
