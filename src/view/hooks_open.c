/* open and fopen in all their forms. */
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

#define OPEN_BODY(dirfd, flags, call)                                 \
    struct look_result r;                                             \
    const struct view *v = hook_view();                               \
    const char *asked = path;                                         \
    enum opening how = OPEN_REAL;                                     \
    if (serves(v) && path && !is_write(flags))                        \
        how = decide(v, dirfd, &path, flags, &r);                     \
    if (how == OPEN_FAILED)                                           \
        return -1;                                                    \
    int fd = call;                                                    \
    if (how == OPEN_STAGED && must_retry(v, fd >= 0, dirfd, asked)) { \
        path = asked;                                                 \
        fd = call;                                                    \
    }                                                                 \
    opened(v, fd, dirfd, asked, flags);                               \
    return fd

static void opened(const struct view *v, int fd, int dirfd, const char *path, int flags)
{
    if (!v || !path)
        return;
    int saved = errno;
    if (is_write(flags))
        hook_wrote_fd(v, dirfd, path, !(flags & O_NOFOLLOW), fd);
    else if (v->mode == VIEW_RECORD)
        record_open(v, fd < 0 ? saved : 0, dirfd, path, flags);
    errno = saved;
}

static mode_t mode_argument(int flags, va_list args)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(args, mode_t) : 0;
}

static int open_path(const char *path, int flags, mode_t mode)
{
    OPEN_BODY(AT_FDCWD, flags, REAL(open)(path, flags, mode));
}

static int open_at(int dirfd, const char *path, int flags, mode_t mode)
{
    OPEN_BODY(dirfd, flags, REAL(openat)(dirfd, path, flags, mode));
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
    return apart(open_path(path, flags, mode), flags, __builtin_return_address(0));
}

int hook_openat(int dirfd, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = mode_argument(flags, args);
    va_end(args);
    return open_at(dirfd, path, flags, mode);
}

static int open_checked(const char *path, int flags)
{
    OPEN_BODY(AT_FDCWD, flags, REAL(__open_2)(path, flags));
}

int hook___open_2(const char *path, int flags)
{
    return apart(open_checked(path, flags), flags, __builtin_return_address(0));
}

int hook___openat_2(int dirfd, const char *path, int flags)
{
    OPEN_BODY(dirfd, flags, REAL(__openat_2)(dirfd, path, flags));
}

int hook_creat(const char *path, mode_t mode)
{
    const struct view *v = hook_view();
    int fd = REAL(creat)(path, mode);
    opened(v, fd, AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC);
    return fd;
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

static FILE *open_stream(const char *path, const char *mode, FILE *stream)
{
    struct look_result r;
    const struct view *v = hook_view();
    const char *asked = path;
    int flags = stream_flags(mode);
    enum opening how = OPEN_REAL;
    if (serves(v) && !is_write(flags))
        how = decide(v, AT_FDCWD, &path, flags, &r);
    if (how == OPEN_FAILED && !stream)
        return NULL;
    if (how == OPEN_FAILED)
        path = asked; /* freopen closes the stream even when it fails: let it */
    if (how == OPEN_STAGED && stream && sys_access(path, R_OK) != 0) {
        look_miss(v, BRG_MISS_STAGE, "open", AT_FDCWD, asked);
        path = asked; /* there is no second try for a stream */
        how = OPEN_REAL;
    }
    FILE *file = stream ? REAL(freopen)(path, mode, stream) : REAL(fopen)(path, mode);
    if (how == OPEN_STAGED && must_retry(v, file || stream, AT_FDCWD, asked))
        file = REAL(fopen)(asked, mode);
    opened(v, file ? fileno(file) : -1, AT_FDCWD, asked, flags);
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
