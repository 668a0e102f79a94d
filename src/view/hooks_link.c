/* readlink and realpath: links from the index, and no path of the staged tree let out. */
#include "view/hooks.h"
#include "view/hooks_fork.h"
#include "base/text.h"

#include <stdlib.h>

static ssize_t plain_link(int dirfd, const char *path, char *buf, size_t size)
{
    return dirfd == AT_FDCWD ? REAL(readlink)(path, buf, size)
                             : REAL(readlinkat)(dirfd, path, buf, size);
}

/* What the kernel says about descriptors and programs may lie in the staged tree, whichever way the
 * path takes to it (/proc, /dev/fd). Returns the length, or -1. */
static ssize_t real_link(const struct view *v, int dirfd, const char *path, char *buf, size_t size)
{
    char target[PATH_MAX];
    if (!serves(v) || size == 0)
        return plain_link(dirfd, path, buf, size);
    ssize_t n = plain_link(dirfd, path, target, sizeof target - 1);
    if (n < 0)
        return n;
    target[n] = '\0';
    const char *original = view_original(v, target);
    size_t len = strlen(original);
    len = len < size ? len : size;
    memcpy(buf, original, len);
    return (ssize_t)len;
}

static ssize_t read_link(int dirfd, const char *path, char *buf, size_t size)
{
    struct look_result r;
    size_t told;
    const struct view *v = hook_view();
    if (v && v->fork && path && fork_message_of(preload_view, path, buf, size, &told))
        return (ssize_t)told;
    if (serves(v) && path && path[0]) {
        switch (look_up(v, "readlink", dirfd, path, 0, &r)) {
        case LOOK_HIT:
            look_hit(v);
            if (r.entry->kind != BRG_SYMLINK || size == 0) {
                errno = EINVAL;
                return -1;
            }
            size = r.entry->target.len < size ? r.entry->target.len : size;
            memcpy(buf, brg_string(v->index, r.entry->target), size);
            return (ssize_t)size;
        case LOOK_MISSING:
            look_hit(v);
            errno = r.err;
            return -1;
        case LOOK_ELSEWHERE: look_hit(v); return real_link(v, AT_FDCWD, r.path, buf, size);
        case LOOK_PASS: break;
        }
    }
    if (v && path && size > 0 && record_message(v, path)) {
        buf[0] = '1';
        return 1;
    }
    ssize_t n = real_link(v, dirfd, path, buf, size);
    if (v)
        record_lookup(v, "readlink", error_of(n), dirfd, path, "");
    return n;
}

ssize_t hook_readlink(const char *path, char *buf, size_t size)
{
    return read_link(AT_FDCWD, path, buf, size);
}

ssize_t hook_readlinkat(int dirfd, const char *path, char *buf, size_t size)
{
    return read_link(dirfd, path, buf, size);
}

/* The checked forms end the program when `size` is more than the room; the real ones do that. */
ssize_t hook___readlink_chk(const char *path, char *buf, size_t size, size_t room)
{
    return size > room ? REAL(__readlink_chk)(path, buf, size, room)
                       : read_link(AT_FDCWD, path, buf, size);
}

ssize_t hook___readlinkat_chk(int dirfd, const char *path, char *buf, size_t size, size_t room)
{
    return size > room ? REAL(__readlinkat_chk)(dirfd, path, buf, size, room)
                       : read_link(dirfd, path, buf, size);
}

/* ---- realpath ---- */

static char *give_path(const char *path, char *resolved)
{
    size_t n = strlen(path) + 1;
    if (!resolved)
        resolved = malloc(n);
    return resolved ? memcpy(resolved, path, n) : NULL;
}

char *hook_realpath(const char *path, char *resolved)
{
    struct look_result r;
    const struct view *v = hook_view();
    if (serves(v) && path && path[0]) {
        switch (look_up(v, "realpath", AT_FDCWD, path, 1, &r)) {
        case LOOK_HIT: look_hit(v); return give_path(brg_string(v->index, r.entry->path), resolved);
        case LOOK_MISSING:
            if (resolved) { /* the libc leaves in it how far it came */
                look_miss(v, BRG_MISS_UNSUPPORTED, "realpath", AT_FDCWD, path);
                break;
            }
            look_hit(v);
            errno = r.err;
            return NULL;
        case LOOK_ELSEWHERE: look_hit(v); return REAL(realpath)(r.path, resolved);
        case LOOK_PASS: break;
        }
    }
    char *result = REAL(realpath)(path, resolved);
    if (v && v->mode == VIEW_RECORD) {
        record_lookup(v, "stat", result ? 0 : errno, AT_FDCWD, path, "");
    } else if (v && result) { /* /proc/self/exe */
        const char *original = view_original(v, result);
        memmove(result, original, strlen(original) + 1);
    }
    return result;
}

char *hook___realpath_chk(const char *path, char *resolved, size_t room)
{
    return room < PATH_MAX ? REAL(__realpath_chk)(path, resolved, room)
                           : hook_realpath(path, resolved);
}

char *hook_canonicalize_file_name(const char *path)
{
    return hook_realpath(path, NULL);
}
