/* The program's own stat calls, for a library that stands before them: `real` is its table of the
 * definitions that come after it, with all of these names, and REAL(name) one of them or NULL.
 * Included once, by the file that has the hooks. */
#ifndef BRG_BASE_REAL_STAT_H
#define BRG_BASE_REAL_STAT_H

#include <sys/stat.h>

#ifdef __x86_64__
#define STAT_VERSION 1
#else
#define STAT_VERSION 0
#endif

/* Before glibc 2.33 the library exports only the __xstat forms. */
static int real_stat(const char *path, struct stat *st)
{
    return REAL(stat) ? REAL(stat)(path, st) : REAL(__xstat)(STAT_VERSION, path, st);
}
static int real_lstat(const char *path, struct stat *st)
{
    return REAL(lstat) ? REAL(lstat)(path, st) : REAL(__lxstat)(STAT_VERSION, path, st);
}
static int real_fstat(int fd, struct stat *st)
{
    return REAL(fstat) ? REAL(fstat)(fd, st) : REAL(__fxstat)(STAT_VERSION, fd, st);
}
static int real_fstatat(int dirfd, const char *path, struct stat *st, int flags)
{
    return REAL(fstatat) ? REAL(fstatat)(dirfd, path, st, flags)
                         : REAL(__fxstatat)(STAT_VERSION, dirfd, path, st, flags);
}

#endif
