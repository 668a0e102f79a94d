/* Calls that name a path and are left to the kernel: counted, so that the report knows of them.
 *
 * nftw, ftw, fts and glob walk directories inside the libc, out of reach of any hook; each counts
 * once for the path it starts at, whatever it goes on to look up.
 */
#include "view/hooks.h"
#include "base/sys.h"

#include <sys/inotify.h>
#include <sys/xattr.h>

static void count(const char *op, const char *path, int follow)
{
    const struct view *v = hook_view();
    if (serves(v) && path && look_covers(v, AT_FDCWD, path, follow))
        look_miss(v, BRG_MISS_UNSUPPORTED, op, AT_FDCWD, path);
}

int hook_chdir(const char *path)
{
    const struct view *v = hook_view();
    count("chdir", path, 1);
    if (!v || v->mode != VIEW_RECORD)
        return REAL(chdir)(path);
    struct stat st;
    int err = path ? sys_stat(path, &st) : 0; /* before: a relative path is from the old place */
    record_lookup(v, "stat", -err, AT_FDCWD, path, "");
    return REAL(chdir)(path);
}

int hook_statfs(const char *path, struct statfs *st)
{
    count("statfs", path, 1);
    return REAL(statfs)(path, st);
}

int hook_statvfs(const char *path, struct statvfs *st)
{
    count("statfs", path, 1);
    return REAL(statvfs)(path, st);
}

long hook_pathconf(const char *path, int name)
{
    count("pathconf", path, 1);
    return REAL(pathconf)(path, name);
}

ssize_t hook_getxattr(const char *path, const char *name, void *value, size_t size)
{
    count("getxattr", path, 1);
    return REAL(getxattr)(path, name, value, size);
}

ssize_t hook_lgetxattr(const char *path, const char *name, void *value, size_t size)
{
    count("getxattr", path, 0);
    return REAL(lgetxattr)(path, name, value, size);
}

ssize_t hook_listxattr(const char *path, char *list, size_t size)
{
    count("listxattr", path, 1);
    return REAL(listxattr)(path, list, size);
}

ssize_t hook_llistxattr(const char *path, char *list, size_t size)
{
    count("listxattr", path, 0);
    return REAL(llistxattr)(path, list, size);
}

int hook_inotify_add_watch(int fd, const char *path, uint32_t mask)
{
    count("inotify", path, 1);
    return REAL(inotify_add_watch)(fd, path, mask);
}

int hook_nftw(const char *path, nftw_visit *visit, int descriptors, int flags)
{
    count("nftw", path, 1);
    return REAL(nftw)(path, visit, descriptors, flags);
}

int hook_ftw(const char *path, ftw_visit *visit, int descriptors)
{
    count("ftw", path, 1);
    return REAL(ftw)(path, visit, descriptors);
}

FTS *hook_fts_open(char *const *paths, int options, fts_order *order)
{
    for (char *const *path = paths; path && *path; path++)
        count("fts", *path, 1);
    return REAL(fts_open)(paths, options, order);
}

int hook_glob(const char *pattern, int flags, glob_error *failed, glob_t *found)
{
    char start[PATH_MAX];
    size_t n = 0, end = 0;
    for (; pattern && pattern[n] && n < sizeof start - 1; n++) {
        if (pattern[n] == '*' || pattern[n] == '?' || pattern[n] == '[' || pattern[n] == '{')
            break;
        start[n] = pattern[n];
        if (pattern[n] == '/')
            end = n;
    }
    start[pattern && pattern[n] ? end : n] = '\0';
    count("glob", start, 1);
    return REAL(glob)(pattern, flags, failed, found);
}

#define BRG_SECTION_LEFT
#define BRG_ALIAS BRG_DEFINE_ALIAS
#include "view/hooks.def"
