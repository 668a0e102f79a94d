/* Calls that make, move and remove names: the real call, then the job's state is told. */
#include "view/hooks.h"

#include <stdarg.h>
#include <stdlib.h>

/* `call`, then what it did to `path`. */
#define WROTE(what, dirfd, path, follow, call)               \
    int result = call, err = error_of(result);               \
    hook_wrote(hook_view(), what, dirfd, path, follow, err); \
    errno = err ? err : errno;                               \
    return result

int hook_mkdir(const char *path, mode_t mode)
{
    WROTE("mkdir", AT_FDCWD, path, 0, REAL(mkdir)(path, mode));
}

int hook_mkdirat(int dirfd, const char *path, mode_t mode)
{
    WROTE("mkdir", dirfd, path, 0, REAL(mkdirat)(dirfd, path, mode));
}

int hook_rmdir(const char *path)
{
    WROTE("rmdir", AT_FDCWD, path, 0, REAL(rmdir)(path));
}

int hook_unlink(const char *path)
{
    WROTE("unlink", AT_FDCWD, path, 0, REAL(unlink)(path));
}

int hook_unlinkat(int dirfd, const char *path, int flags)
{
    WROTE(flags & AT_REMOVEDIR ? "rmdir" : "unlink", dirfd, path, 0,
          REAL(unlinkat)(dirfd, path, flags));
}

int hook_remove(const char *path)
{
    WROTE("unlink", AT_FDCWD, path, 0, REAL(remove)(path));
}

#define RENAMED(from_fd, from, to_fd, to, call)               \
    int result = call, err = error_of(result);                \
    hook_wrote(hook_view(), "rename", from_fd, from, 0, err); \
    hook_wrote(hook_view(), "rename", to_fd, to, 0, err);     \
    errno = err ? err : errno;                                \
    return result

int hook_rename(const char *from, const char *to)
{
    RENAMED(AT_FDCWD, from, AT_FDCWD, to, REAL(rename)(from, to));
}

int hook_renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    RENAMED(from_fd, from, to_fd, to, REAL(renameat)(from_fd, from, to_fd, to));
}

int hook_renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned int flags)
{
    RENAMED(from_fd, from, to_fd, to, REAL(renameat2)(from_fd, from, to_fd, to, flags));
}

/* A new link also changes what the old name says (its link count). */
int hook_link(const char *from, const char *to)
{
    RENAMED(AT_FDCWD, from, AT_FDCWD, to, REAL(link)(from, to));
}

int hook_linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
    RENAMED(from_fd, from, to_fd, to, REAL(linkat)(from_fd, from, to_fd, to, flags));
}

int hook_symlink(const char *target, const char *path)
{
    WROTE("symlink", AT_FDCWD, path, 0, REAL(symlink)(target, path));
}

int hook_symlinkat(const char *target, int dirfd, const char *path)
{
    WROTE("symlink", dirfd, path, 0, REAL(symlinkat)(target, dirfd, path));
}

int hook_mknod(const char *path, mode_t mode, dev_t device)
{
    WROTE("mknod", AT_FDCWD, path, 0, REAL(mknod)(path, mode, device));
}

int hook_mknodat(int dirfd, const char *path, mode_t mode, dev_t device)
{
    WROTE("mknod", dirfd, path, 0, REAL(mknodat)(dirfd, path, mode, device));
}

/* What mknod() was before glibc 2.33. */
int hook___xmknod(int version, const char *path, mode_t mode, dev_t *device)
{
    WROTE("mknod", AT_FDCWD, path, 0, REAL(__xmknod)(version, path, mode, device));
}

int hook___xmknodat(int version, int dirfd, const char *path, mode_t mode, dev_t *device)
{
    WROTE("mknod", dirfd, path, 0, REAL(__xmknodat)(version, dirfd, path, mode, device));
}

int hook_mkfifo(const char *path, mode_t mode)
{
    WROTE("mknod", AT_FDCWD, path, 0, REAL(mkfifo)(path, mode));
}

int hook_mkfifoat(int dirfd, const char *path, mode_t mode)
{
    WROTE("mknod", dirfd, path, 0, REAL(mkfifoat)(dirfd, path, mode));
}

int hook_truncate(const char *path, off_t length)
{
    WROTE("truncate", AT_FDCWD, path, 1, REAL(truncate)(path, length));
}

/* ---- temporary names ---- */

static int made(const char *path, int fd)
{
    int saved = errno;
    hook_wrote_fd(hook_view(), AT_FDCWD, path, 0, fd);
    errno = saved;
    return fd;
}

int hook_mkstemp(char *pattern)
{
    return made(pattern, REAL(mkstemp)(pattern));
}

int hook_mkostemp(char *pattern, int flags)
{
    return made(pattern, REAL(mkostemp)(pattern, flags));
}

int hook_mkstemps(char *pattern, int tail)
{
    return made(pattern, REAL(mkstemps)(pattern, tail));
}

int hook_mkostemps(char *pattern, int tail, int flags)
{
    return made(pattern, REAL(mkostemps)(pattern, tail, flags));
}

char *hook_mkdtemp(char *pattern)
{
    char *path = REAL(mkdtemp)(pattern);
    int saved = errno;
    hook_wrote(hook_view(), "mkdir", AT_FDCWD, pattern, 0, path ? 0 : saved);
    errno = saved;
    return path;
}

#define BRG_SECTION_WRITE
#define BRG_ALIAS BRG_DEFINE_ALIAS
#include "view/hooks.def"
