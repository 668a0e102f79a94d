/* Preloaded into a rank: files called "file", and what will be published as such, lie in a network
 * file system, of which this process is a node of its own. What is written goes to the server when
 * a descriptor of it is closed or synced, or its size is set; what others wrote is seen when it is
 * opened. The server is the real file. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TAKEN_OVER __attribute__((visibility("default")))
#define MOST_BYTES (1u << 20)

/* What this node knows of a file. */
struct cached {
    struct cached *next;
    dev_t device;
    ino_t inode;
    int looked; /* at the server, since it was opened last */
    size_t size;
    char bytes[MOST_BYTES], waits[MOST_BYTES]; /* to be written */
};

static struct cached *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int is_ours(int fd)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n <= 0)
        return 0;
    path[n] = '\0';
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return !strcmp(name, "file") || (!strncmp(name, ".file.brg-", 10) && !strchr(name + 10, '.'));
}

/* With the lock held. NULL: not of a file that is ours. */
static struct cached *cached_of(int fd)
{
    struct stat st;
    int was = errno;
    struct cached *c = all;
    if (!is_ours(fd) || fstat(fd, &st)) {
        errno = was;
        return NULL;
    }
    while (c && (c->inode != st.st_ino || c->device != st.st_dev))
        c = c->next;
    if (!c) {
        c = calloc(1, sizeof *c);
        if (!c)
            abort();
        c->device = st.st_dev;
        c->inode = st.st_ino;
        c->next = all;
        all = c;
    }
    errno = was;
    return c;
}

/* Bytes that wait stay. */
static void look(struct cached *c, int fd)
{
    static char there[MOST_BYTES];
    if (c->looked)
        return;
    ssize_t n = syscall(SYS_pread64, fd, there, sizeof there, 0L);
    if (n < 0)
        return;
    size_t end = 0;
    for (size_t i = 0; i < MOST_BYTES; i++) {
        if (c->waits[i])
            end = i + 1;
        else
            c->bytes[i] = i < (size_t)n ? there[i] : 0;
    }
    c->size = end > (size_t)n ? end : (size_t)n;
    c->looked = 1;
}

static void send(struct cached *c, int fd)
{
    for (size_t i = 0, end; i < MOST_BYTES; i = end) {
        for (end = i + 1; end < MOST_BYTES && c->waits[end] == c->waits[i];)
            end++;
        if (c->waits[i] && syscall(SYS_pwrite64, fd, c->bytes + i, end - i, i) != (long)(end - i))
            return; /* this descriptor is only read */
        memset(c->waits + i, 0, end - i);
    }
}

TAKEN_OVER ssize_t pwrite(int fd, const void *buf, size_t n, off_t offset)
{
    pthread_mutex_lock(&lock);
    struct cached *c = cached_of(fd);
    if (c) {
        memcpy(c->bytes + offset, buf, n);
        memset(c->waits + offset, 1, n);
        if ((size_t)offset + n > c->size)
            c->size = (size_t)offset + n;
    }
    pthread_mutex_unlock(&lock);
    return c ? (ssize_t)n : syscall(SYS_pwrite64, fd, buf, n, offset);
}

TAKEN_OVER ssize_t pread(int fd, void *buf, size_t n, off_t offset)
{
    pthread_mutex_lock(&lock);
    struct cached *c = cached_of(fd);
    if (c) {
        look(c, fd);
        n = (size_t)offset >= c->size      ? 0
            : n < c->size - (size_t)offset ? n
                                           : c->size - (size_t)offset;
        memcpy(buf, c->bytes + offset, n);
    }
    pthread_mutex_unlock(&lock);
    return c ? (ssize_t)n : syscall(SYS_pread64, fd, buf, n, offset);
}

/* Before the call itself: what waits has been sent. */
static void sent(int fd, int looks_again)
{
    pthread_mutex_lock(&lock);
    struct cached *c = cached_of(fd);
    if (c) {
        send(c, fd);
        c->looked &= !looks_again;
    }
    pthread_mutex_unlock(&lock);
}

TAKEN_OVER int close(int fd)
{
    sent(fd, 0);
    return (int)syscall(SYS_close, fd);
}

TAKEN_OVER int fsync(int fd)
{
    sent(fd, 0);
    return (int)syscall(SYS_fsync, fd);
}

TAKEN_OVER int ftruncate(int fd, off_t bytes)
{
    sent(fd, 1);
    return (int)syscall(SYS_ftruncate, fd, bytes);
}

TAKEN_OVER int open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    int mode = flags & O_CREAT ? va_arg(more, int) : 0;
    va_end(more);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    pthread_mutex_lock(&lock);
    struct cached *c = fd < 0 ? NULL : cached_of(fd);
    if (c)
        c->looked = 0;
    pthread_mutex_unlock(&lock);
    return fd;
}

/* The server does not copy. */
TAKEN_OVER ssize_t copy_file_range(int from, off64_t *at, int to, off64_t *there, size_t n,
                                   unsigned flags)
{
    (void)from, (void)at, (void)to, (void)there, (void)n, (void)flags;
    errno = EXDEV;
    return -1;
}
