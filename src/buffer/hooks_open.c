/* open and fopen in all their forms. */
#include "buffer/hooks.h"

#include <string.h>

/* Before an open that may cut the file, that goes to its end by itself (fopen for appending), or
 * that looks at us from outside (/proc/self/fdinfo). */
static void before(const char *path, int flags)
{
    if (__builtin_expect(!__atomic_load_n(&n_files, __ATOMIC_RELAXED), 1))
        return;
    int cuts = (flags & (O_TRUNC | O_APPEND)) != 0, looks = path && strncmp(path, "/proc/", 6) == 0;
    if (cuts || looks)
        file_drain_all(looks);
}

static void after(int fd, const char *path, int flags)
{
    if (fd < 0 || __builtin_expect(!buffer_active, 0))
        return;
    int saved = errno;
    file_opened(fd, path, flags);
    errno = saved;
}

#define MODE_OF(flags)                                           \
    mode_t mode = 0;                                             \
    if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) { \
        va_list list;                                            \
        va_start(list, flags);                                   \
        mode = va_arg(list, mode_t);                             \
        va_end(list);                                            \
    }

int hook_open(const char *path, int flags, ...)
{
    MODE_OF(flags)
    before(path, flags);
    int fd = REAL(open)(path, flags, mode);
    after(fd, path, flags);
    return fd;
}
int hook_openat(int dirfd, const char *path, int flags, ...)
{
    MODE_OF(flags)
    before(path, flags);
    int fd = REAL(openat)(dirfd, path, flags, mode);
    after(fd, path, flags);
    return fd;
}
int hook___open_2(const char *path, int flags)
{
    before(path, flags);
    int fd = REAL(__open_2)(path, flags);
    after(fd, path, flags);
    return fd;
}
int hook___openat_2(int dirfd, const char *path, int flags)
{
    before(path, flags);
    int fd = REAL(__openat_2)(dirfd, path, flags);
    after(fd, path, flags);
    return fd;
}
int hook_creat(const char *path, mode_t mode)
{
    before(path, O_TRUNC);
    int fd = REAL(creat)(path, mode);
    after(fd, path, O_WRONLY | O_CREAT | O_TRUNC);
    return fd;
}

static int flags_of(const char *mode)
{
    int flags = *mode == 'r' ? O_RDONLY : *mode == 'w' ? O_WRONLY | O_TRUNC : O_WRONLY | O_APPEND;
    if (strpbrk(mode, "+"))
        flags = (flags & ~O_ACCMODE) | O_RDWR;
    return flags;
}
/* Streams that glibc maps instead of reading them. */
static int maps(const char *mode)
{
    return strcspn(mode, "m") < strcspn(mode, ",");
}

FILE *hook_fopen(const char *path, const char *mode)
{
    before(path, flags_of(mode));
    FILE *stream = REAL(fopen)(path, mode);
    if (stream) {
        after(stream->_fileno, stdio_hooked && !maps(mode) ? path : NULL, flags_of(mode));
        if (!stdio_hooked || maps(mode))
            left_untold(stream->_fileno, "a stream that is not reached");
    }
    return stream;
}
FILE *hook_freopen(const char *path, const char *mode, FILE *stream)
{
    before(path, flags_of(mode));
    if (stream && stream->_fileno >= 0)
        left(stream->_fileno, "freopen");
    stream = REAL(freopen)(path, mode, stream);
    if (stream) {
        after(stream->_fileno, NULL, flags_of(mode));
        left(stream->_fileno, "freopen");
    }
    return stream;
}
FILE *hook_fdopen(int fd, const char *mode)
{
    if ((!stdio_hooked || maps(mode)) && left(fd, "a stream that is not reached"))
        return NULL;
    FILE *stream = REAL(fdopen)(fd, mode);
    /* "a" makes the descriptor append */
    if (stream && *mode == 'a')
        left_untold(fd, "fdopen for appending");
    return stream;
}

#define BRG_SECTION_OPEN
#define BRG_ALIAS BRG_DEFINE_ALIAS
#include "buffer/hooks.def"
