/* Calls that change a file's attributes.
 *
 * By descriptor they could meet a staged copy, which other ranks share: then the original is
 * changed by its path, and marked.
 */
#include "view/hooks.h"

#define WROTE(what, dirfd, path, follow, call)               \
    int result = call, err = error_of(result);               \
    hook_wrote(hook_view(), what, dirfd, path, follow, err); \
    errno = err ? err : errno;                               \
    return result

/* The original path of a staged file that `fd` is open on; NULL if it is something else. */
static const char *staged_path(int fd, char *buf)
{
    const struct view *v = hook_view();
    int staged = 0;
    if (!serves(v) || fd < 0 || view_fd_path(v, fd, buf, PATH_MAX, &staged) < 0)
        return NULL;
    return staged ? buf : NULL;
}

int hook_chmod(const char *path, mode_t mode)
{
    WROTE("chmod", AT_FDCWD, path, 1, REAL(chmod)(path, mode));
}

int hook_lchmod(const char *path, mode_t mode)
{
    WROTE("chmod", AT_FDCWD, path, 0, REAL(lchmod)(path, mode));
}

int hook_fchmod(int fd, mode_t mode)
{
    char buf[PATH_MAX];
    const char *path = staged_path(fd, buf);
    return path ? hook_chmod(path, mode) : REAL(fchmod)(fd, mode);
}

int hook_fchmodat(int dirfd, const char *path, mode_t mode, int flags)
{
    WROTE("chmod", dirfd, path, !(flags & AT_SYMLINK_NOFOLLOW),
          REAL(fchmodat)(dirfd, path, mode, flags));
}

int hook_chown(const char *path, uid_t user, gid_t group)
{
    WROTE("chown", AT_FDCWD, path, 1, REAL(chown)(path, user, group));
}

int hook_lchown(const char *path, uid_t user, gid_t group)
{
    WROTE("chown", AT_FDCWD, path, 0, REAL(lchown)(path, user, group));
}

int hook_fchown(int fd, uid_t user, gid_t group)
{
    char buf[PATH_MAX];
    const char *path = staged_path(fd, buf);
    return path ? hook_chown(path, user, group) : REAL(fchown)(fd, user, group);
}

int hook_fchownat(int dirfd, const char *path, uid_t user, gid_t group, int flags)
{
    char buf[PATH_MAX];
    const char *staged =
        path && !path[0] && (flags & AT_EMPTY_PATH) ? staged_path(dirfd, buf) : NULL;
    if (staged)
        return hook_chown(staged, user, group);
    WROTE("chown", dirfd, path, !(flags & AT_SYMLINK_NOFOLLOW),
          REAL(fchownat)(dirfd, path, user, group, flags));
}

int hook_utime(const char *path, const struct utimbuf *times)
{
    WROTE("utime", AT_FDCWD, path, 1, REAL(utime)(path, times));
}

int hook_utimes(const char *path, const struct timeval times[2])
{
    WROTE("utime", AT_FDCWD, path, 1, REAL(utimes)(path, times));
}

int hook_lutimes(const char *path, const struct timeval times[2])
{
    WROTE("utime", AT_FDCWD, path, 0, REAL(lutimes)(path, times));
}

int hook_futimes(int fd, const struct timeval times[2])
{
    char buf[PATH_MAX];
    const char *path = staged_path(fd, buf);
    return path ? hook_utimes(path, times) : REAL(futimes)(fd, times);
}

int hook_futimesat(int dirfd, const char *path, const struct timeval times[2])
{
    WROTE("utime", dirfd, path, 1, REAL(futimesat)(dirfd, path, times));
}

int hook_utimensat(int dirfd, const char *path, const struct timespec times[2], int flags)
{
    char buf[PATH_MAX];
    const char *staged = path ? NULL : staged_path(dirfd, buf);
    if (staged) {
        path = staged;
        dirfd = AT_FDCWD;
    }
    WROTE("utime", dirfd, path, !(flags & AT_SYMLINK_NOFOLLOW),
          REAL(utimensat)(dirfd, path, times, flags));
}

int hook_futimens(int fd, const struct timespec times[2])
{
    char buf[PATH_MAX];
    const char *path = staged_path(fd, buf);
    return path ? hook_utimensat(AT_FDCWD, path, times, 0) : REAL(futimens)(fd, times);
}
