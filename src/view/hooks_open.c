/* open and fopen in all their forms.
 *
 * Signal handlers open files, too, on stacks as small as 8 KiB: what needs room for a path is not
 * inlined, so that no call has room for two.
 */
#include "view/hooks.h"
#include "base/sys.h"
#include "base/text.h"
#include "fork/held.h"

#include <stdarg.h>

enum opening {
    OPEN_REAL,   /* the real call on *path */
    OPEN_STAGED, /* the real call on *path, which is the staged copy: if that fails, see below */
    OPEN_FAILED  /* errno is set */
};

static int is_write(int flags)
{
    return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) ||
           (flags & O_TMPFILE) == O_TMPFILE;
}

static enum opening failed(const struct view *v, int err)
{
    look_hit(v);
    errno = err;
    return OPEN_FAILED;
}

/* What to do about opening a file for reading. */
static enum opening decide(const struct view *v, int dirfd, const char **path, int flags,
                           struct look_result *r)
{
    const char *staged;
    switch (look_up(v, "open", dirfd, *path, !(flags & O_NOFOLLOW), r)) {
    case LOOK_MISSING: return failed(v, r->err);
    case LOOK_ELSEWHERE:
        look_hit(v);
        *path = r->path;
        return OPEN_REAL;
    case LOOK_PASS: return OPEN_REAL;
    case LOOK_HIT: break;
    }
    if (r->entry->kind == BRG_DIR) {
        look_miss(v, BRG_MISS_DIRECTORY, "open", dirfd, *path);
        return OPEN_REAL;
    }
    if (flags & O_PATH) {
        look_miss(v, BRG_MISS_UNSUPPORTED, "open", dirfd, *path);
        return OPEN_REAL;
    }
    if (flags & O_DIRECTORY)
        return failed(v, ENOTDIR);
    if (r->entry->kind == BRG_SYMLINK)
        return failed(v, ELOOP);
    staged = look_staged(v, r);
    if (!staged) {
        look_miss(v, BRG_MISS_NO_CONTENT, "open", dirfd, *path);
        return OPEN_REAL;
    }
    *path = staged;
    return OPEN_STAGED;
}

/* After opening a staged copy. Returns whether the original must be opened instead. */
static int must_retry(const struct view *v, int worked, int dirfd, const char *path)
{
    if (worked || errno == EMFILE || errno == ENFILE || errno == EINTR || errno == ENOMEM) {
        look_hit(v);
        return 0;
    }
    look_miss(v, BRG_MISS_STAGE, "open", dirfd, path);
    return 1;
}

static void record_open(const struct view *v, int err, int dirfd, const char *path, int flags)
{
    char extra[24];
    struct text t = text_in(extra, sizeof extra);
    text_number(&t, (unsigned)flags, 8);
    record_lookup(v, "open", err, dirfd, path, extra);
}

static void opened(const struct view *v, int fd, int dirfd, const char *path, int flags)
{
    int saved = errno;
    if (is_write(flags))
        hook_wrote_fd(v, dirfd, path, !(flags & O_NOFOLLOW), fd);
    else if (v->mode == VIEW_RECORD)
        record_open(v, fd < 0 ? saved : 0, dirfd, path, flags);
    errno = saved;
}

/* Whether `path` may lead to what a descriptor is open on, and not by its own name. */
static int is_of_descriptor(const char *path, int flags)
{
    return !(flags & O_NOFOLLOW) && (text_starts(path, "/proc/") || text_starts(path, "/dev/fd/") ||
                                     text_starts(path, "/dev/std"));
}

/* Where to write what `path` leads to: to the original of a staged copy, which ranks share. */
static const char *to_write(const struct view *v, int dirfd, const char *path, char *buf)
{
    int staged = 0;
    return view_end_path(v, dirfd, path, buf, PATH_MAX, &staged) >= 0 && staged ? buf : path;
}

/* One of the real calls, in one form. */
typedef int opener(int dirfd, const char *path, int flags, mode_t mode);

__attribute__((noinline)) static int open_read(const struct view *v, opener *call, int dirfd,
                                               const char *path, int flags)
{
    struct look_result r;
    const char *asked = path;
    enum opening how = decide(v, dirfd, &path, flags, &r);
    if (how == OPEN_FAILED)
        return -1;
    int fd = call(dirfd, path, flags, 0);
    if (how == OPEN_STAGED && must_retry(v, fd >= 0, dirfd, asked))
        fd = call(dirfd, asked, flags, 0);
    return fd;
}

__attribute__((noinline)) static int open_descriptors(const struct view *v, opener *call, int dirfd,
                                                      const char *path, int flags, mode_t mode)
{
    char original[PATH_MAX];
    return call(dirfd, to_write(v, dirfd, path, original), flags, mode);
}

static int open_any(opener *call, int dirfd, const char *path, int flags, mode_t mode)
{
    const struct view *v = hook_view();
    if (!v || !path)
        return call(dirfd, path, flags, mode);
    if (serves(v) && !is_write(flags))
        return open_read(v, call, dirfd, path, flags);
    int fd = serves(v) && is_of_descriptor(path, flags)
                 ? open_descriptors(v, call, dirfd, path, flags, mode)
                 : call(dirfd, path, flags, mode);
    opened(v, fd, dirfd, path, flags);
    return fd;
}

static int call_open(int dirfd, const char *path, int flags, mode_t mode)
{
    (void)dirfd;
    return REAL(open)(path, flags, mode);
}

static int call_openat(int dirfd, const char *path, int flags, mode_t mode)
{
    return REAL(openat)(dirfd, path, flags, mode);
}

static int call_open_2(int dirfd, const char *path, int flags, mode_t mode)
{
    (void)dirfd, (void)mode;
    return REAL(__open_2)(path, flags);
}

static int call_openat_2(int dirfd, const char *path, int flags, mode_t mode)
{
    (void)mode;
    return REAL(__openat_2)(dirfd, path, flags);
}

static int call_creat(int dirfd, const char *path, int flags, mode_t mode)
{
    (void)dirfd, (void)flags;
    return REAL(creat)(path, mode);
}

static mode_t mode_argument(int flags, va_list args)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(args, mode_t) : 0;
}

/* What code at `caller` is given for `fd`, see held.h. */
static int apart(int fd, int flags, const void *caller)
{
    const struct view *v = hook_view();
    return fd >= 0 && v && v->fork && !is_write(flags) ? held_apart(fd, caller) : fd;
}

int hook_open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = mode_argument(flags, args);
    va_end(args);
    int fd = open_any(call_open, AT_FDCWD, path, flags, mode);
    return apart(fd, flags, __builtin_return_address(0));
}

int hook_openat(int dirfd, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = mode_argument(flags, args);
    va_end(args);
    return open_any(call_openat, dirfd, path, flags, mode);
}

int hook___open_2(const char *path, int flags)
{
    int fd = open_any(call_open_2, AT_FDCWD, path, flags, 0);
    return apart(fd, flags, __builtin_return_address(0));
}

int hook___openat_2(int dirfd, const char *path, int flags)
{
    return open_any(call_openat_2, dirfd, path, flags, 0);
}

int hook_creat(const char *path, mode_t mode)
{
    return open_any(call_creat, AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

/* ---- streams ---- */

/* The flags that fopen passes to open. */
static int stream_flags(const char *mode)
{
    int flags = mode[0] == 'r'   ? O_RDONLY
                : mode[0] == 'w' ? O_WRONLY | O_CREAT | O_TRUNC
                                 : O_WRONLY | O_CREAT | O_APPEND;
    for (const char *m = mode; *m && *m != ','; m++)
        if (*m == '+')
            flags = (flags & ~O_ACCMODE) | O_RDWR;
    return flags;
}

static FILE *call_stream(const char *path, const char *mode, FILE *stream)
{
    return stream ? REAL(freopen)(path, mode, stream) : REAL(fopen)(path, mode);
}

__attribute__((noinline)) static FILE *open_stream_read(const struct view *v, const char *path,
                                                        const char *mode, int flags, FILE *stream)
{
    struct look_result r;
    const char *asked = path;
    enum opening how = decide(v, AT_FDCWD, &path, flags, &r);
    if (how == OPEN_FAILED && !stream)
        return NULL;
    if (how == OPEN_FAILED)
        path = asked; /* freopen closes the stream even when it fails: let it */
    if (how == OPEN_STAGED && stream && sys_access(path, R_OK) != 0) {
        look_miss(v, BRG_MISS_STAGE, "open", AT_FDCWD, asked);
        path = asked; /* there is no second try for a stream */
        how = OPEN_REAL;
    }
    FILE *file = call_stream(path, mode, stream);
    if (how == OPEN_STAGED && must_retry(v, file || stream, AT_FDCWD, asked))
        file = REAL(fopen)(asked, mode);
    return file;
}

__attribute__((noinline)) static FILE *open_stream_descriptors(const struct view *v,
                                                               const char *path, const char *mode,
                                                               FILE *stream)
{
    char original[PATH_MAX];
    return call_stream(to_write(v, AT_FDCWD, path, original), mode, stream);
}

static FILE *open_stream(const char *path, const char *mode, FILE *stream)
{
    const struct view *v = hook_view();
    int flags = stream_flags(mode);
    if (!v)
        return call_stream(path, mode, stream);
    if (serves(v) && !is_write(flags))
        return open_stream_read(v, path, mode, flags, stream);
    FILE *file = serves(v) && is_of_descriptor(path, flags)
                     ? open_stream_descriptors(v, path, mode, stream)
                     : call_stream(path, mode, stream);
    opened(v, file ? fileno(file) : -1, AT_FDCWD, path, flags);
    return file;
}

FILE *hook_fopen(const char *path, const char *mode)
{
    return path && mode ? open_stream(path, mode, NULL) : REAL(fopen)(path, mode);
}

FILE *hook_freopen(const char *path, const char *mode, FILE *stream)
{
    return path && mode ? open_stream(path, mode, stream) : REAL(freopen)(path, mode, stream);
}

#define BRG_SECTION_OPEN
#define BRG_ALIAS BRG_DEFINE_ALIAS
#include "view/hooks.def"
