/* See file_name.h. */
#include "mpiio/file_name.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* As this node knows it: no server is asked again. */
static int identify(int descriptor, const char *path, int flags, uint64_t *device, uint64_t *inode)
{
    struct statx found;
    if (statx(descriptor, path, flags | AT_STATX_DONT_SYNC, STATX_INO, &found))
        return 0;
    *device = makedev(found.stx_dev_major, found.stx_dev_minor);
    *inode = found.stx_ino;
    return 1;
}

void file_name_find(struct file_name *name, const char *path)
{
    char folder[STORE_PATH] = "";
    int is_absolute = *path == '/';
    *name = (struct file_name){.path = ""};
    if (!is_absolute && !getcwd(folder, sizeof folder))
        return;
    int n = snprintf(name->path, sizeof name->path, "%s%s%s", folder, is_absolute ? "" : "/", path);
    if (n >= (int)sizeof name->path || !identify(AT_FDCWD, path, 0, &name->device, &name->inode))
        *name->path = 0;
}

int file_name_is_of(const struct file_name *name, int descriptor)
{
    uint64_t device, inode;
    return *name->path && identify(descriptor, "", AT_EMPTY_PATH, &device, &inode) &&
           device == name->device && inode == name->inode;
}
