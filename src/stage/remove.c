/* See remove.h. Descends by descriptors; depth is bounded by the open files allowed. */
#include "stage/remove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static void keep_first(int *rc, int error)
{
    if (!*rc)
        *rc = error;
}

int remove_tree(int parent, const char *name)
{
    int rc = 0;
    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM) /* EPERM: what POSIX says of a directory */
        return -errno;
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir) {
        rc = -errno;
        if (fd >= 0)
            close(fd);
        return rc;
    }
    for (struct dirent *d; (d = readdir(dir));) {
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
            continue;
        /* Files need no look inside; the kernel says which are none. */
        if (d->d_type == DT_DIR || unlinkat(fd, d->d_name, 0))
            keep_first(&rc, remove_tree(fd, d->d_name));
    }
    closedir(dir);
    if (unlinkat(parent, name, AT_REMOVEDIR) && errno != ENOENT)
        keep_first(&rc, -errno);
    return rc;
}
