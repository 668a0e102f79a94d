/* Metadata operations of the slow file system: each waits for its turn, then does the same to the
 * backing folder. */
#include "lab/slowfs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

static void reply_status(fuse_req_t request, int result)
{
    fuse_reply_err(request, result == 0 ? 0 : errno);
}

static void reply_entry(fuse_req_t request, struct slow_inode *parent, const char *name)
{
    struct fuse_entry_param entry;
    int result = slow_inode_find(parent, name, &entry);
    if (result != 0)
        fuse_reply_err(request, -result);
    else if (fuse_reply_entry(request, &entry) == -ENOENT)
        slow_inode_forget(entry.ino, 1); /* the asker was interrupted and will not forget it */
}

static void op_lookup(fuse_req_t request, fuse_ino_t parent, const char *name)
{
    slow_serve(SLOW_LOOKUP);
    reply_entry(request, slow_inode_get(parent), name);
}

static void op_forget(fuse_req_t request, fuse_ino_t number, uint64_t n)
{
    slow_inode_forget(number, n);
    fuse_reply_none(request);
}

static void op_forget_multi(fuse_req_t request, size_t count, struct fuse_forget_data *forgets)
{
    for (size_t i = 0; i < count; i++)
        slow_inode_forget(forgets[i].ino, forgets[i].nlookup);
    fuse_reply_none(request);
}

static void reply_attr(fuse_req_t request, struct slow_inode *inode)
{
    struct stat found;
    if (fstatat(inode->fd, "", &found, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0)
        fuse_reply_err(request, errno);
    else
        fuse_reply_attr(request, &found, SLOW_ATTR_TIMEOUT);
}

static void op_getattr(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *info)
{
    (void)info;
    slow_serve(SLOW_GETATTR);
    reply_attr(request, slow_inode_get(number));
}

static int set_times(struct slow_inode *inode, const struct stat *attr, int what)
{
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_OMIT}};
    if (what & FUSE_SET_ATTR_ATIME_NOW)
        times[0].tv_nsec = UTIME_NOW;
    else if (what & FUSE_SET_ATTR_ATIME)
        times[0] = attr->st_atim;
    if (what & FUSE_SET_ATTR_MTIME_NOW)
        times[1].tv_nsec = UTIME_NOW;
    else if (what & FUSE_SET_ATTR_MTIME)
        times[1] = attr->st_mtim;
    if (utimensat(inode->fd, "", times, AT_EMPTY_PATH) == 0)
        return 0;
    if (errno != EINVAL) /* kernels before 5.8 do not know AT_EMPTY_PATH here */
        return -1;
    return utimensat(AT_FDCWD, slow_inode_path(inode).text, times, 0);
}

static int set_attributes(struct slow_inode *inode, const struct stat *attr, int what,
                          const struct fuse_file_info *info)
{
    struct slow_path path = slow_inode_path(inode);
    if (what & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) {
        uid_t uid = what & FUSE_SET_ATTR_UID ? attr->st_uid : (uid_t)-1;
        gid_t gid = what & FUSE_SET_ATTR_GID ? attr->st_gid : (gid_t)-1;
        if (fchownat(inode->fd, "", uid, gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0)
            return -1;
    }
    if ((what & FUSE_SET_ATTR_MODE) && chmod(path.text, attr->st_mode) != 0)
        return -1;
    if (what & FUSE_SET_ATTR_SIZE) {
        int result =
            info ? ftruncate((int)info->fh, attr->st_size) : truncate(path.text, attr->st_size);
        if (result != 0)
            return -1;
    }
    if (what & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME_NOW |
                FUSE_SET_ATTR_MTIME_NOW))
        return set_times(inode, attr, what);
    return 0;
}

static void op_setattr(fuse_req_t request, fuse_ino_t number, struct stat *attr, int what,
                       struct fuse_file_info *info)
{
    slow_serve(SLOW_SETATTR);
    struct slow_inode *inode = slow_inode_get(number);
    if (set_attributes(inode, attr, what, info) != 0)
        fuse_reply_err(request, errno);
    else
        reply_attr(request, inode);
}

static void op_readlink(fuse_req_t request, fuse_ino_t number)
{
    slow_serve(SLOW_READLINK);
    char target[PATH_MAX + 1];
    ssize_t n = readlinkat(slow_inode_get(number)->fd, "", target, sizeof target);
    if (n < 0 || n == sizeof target) {
        fuse_reply_err(request, n < 0 ? errno : ENAMETOOLONG);
        return;
    }
    target[n] = '\0';
    fuse_reply_readlink(request, target);
}

int slow_meta_own(fuse_req_t request, struct slow_inode *parent, const char *name, mode_t mode)
{
    const struct fuse_ctx *asker = fuse_req_ctx(request);
    struct stat folder;
    if (fstatat(parent->fd, "", &folder, AT_EMPTY_PATH) != 0)
        return -errno;
    gid_t gid = folder.st_mode & S_ISGID ? (gid_t)-1 : asker->gid;
    if (fchownat(parent->fd, name, asker->uid, gid, AT_SYMLINK_NOFOLLOW) != 0)
        return -errno;
    /* a change of owner takes these bits away */
    if (!S_ISLNK(mode) && !S_ISDIR(mode) && (mode & (S_ISUID | S_ISGID)) &&
        fchmodat(parent->fd, name, mode & 07777, 0) != 0)
        return -errno;
    return 0;
}

/* Ends an operation that made `name`: `made` is the result of the system call. */
static void reply_made(fuse_req_t request, struct slow_inode *parent, const char *name, mode_t mode,
                       int made)
{
    int result = made == 0 ? slow_meta_own(request, parent, name, mode) : -errno;
    if (result != 0)
        fuse_reply_err(request, -result);
    else
        reply_entry(request, parent, name);
}

static void op_mknod(fuse_req_t request, fuse_ino_t number, const char *name, mode_t mode,
                     dev_t device)
{
    slow_serve(SLOW_MKNOD);
    struct slow_inode *parent = slow_inode_get(number);
    reply_made(request, parent, name, mode, mknodat(parent->fd, name, mode, device));
}

static void op_mkdir(fuse_req_t request, fuse_ino_t number, const char *name, mode_t mode)
{
    slow_serve(SLOW_MKDIR);
    struct slow_inode *parent = slow_inode_get(number);
    int made = mkdirat(parent->fd, name, mode);
    reply_made(request, parent, name, S_IFDIR | mode, made);
}

static void op_symlink(fuse_req_t request, const char *target, fuse_ino_t number, const char *name)
{
    slow_serve(SLOW_SYMLINK);
    struct slow_inode *parent = slow_inode_get(number);
    reply_made(request, parent, name, S_IFLNK, symlinkat(target, parent->fd, name));
}

static void op_unlink(fuse_req_t request, fuse_ino_t parent, const char *name)
{
    slow_serve(SLOW_UNLINK);
    reply_status(request, unlinkat(slow_inode_get(parent)->fd, name, 0));
}

static void op_rmdir(fuse_req_t request, fuse_ino_t parent, const char *name)
{
    slow_serve(SLOW_RMDIR);
    reply_status(request, unlinkat(slow_inode_get(parent)->fd, name, AT_REMOVEDIR));
}

static void op_rename(fuse_req_t request, fuse_ino_t from, const char *old_name, fuse_ino_t to,
                      const char *new_name, unsigned flags)
{
    slow_serve(SLOW_RENAME);
    int from_fd = slow_inode_get(from)->fd, to_fd = slow_inode_get(to)->fd;
    reply_status(request, renameat2(from_fd, old_name, to_fd, new_name, flags));
}

static void op_link(fuse_req_t request, fuse_ino_t number, fuse_ino_t new_parent, const char *name)
{
    slow_serve(SLOW_LINK);
    struct slow_inode *parent = slow_inode_get(new_parent);
    if (linkat(slow_inode_get(number)->fd, "", parent->fd, name, AT_EMPTY_PATH) != 0)
        fuse_reply_err(request, errno);
    else
        reply_entry(request, parent, name);
}

static void op_statfs(fuse_req_t request, fuse_ino_t number)
{
    slow_serve(SLOW_STATFS);
    struct statvfs found;
    if (fstatvfs(slow_inode_get(number)->fd, &found) != 0)
        fuse_reply_err(request, errno);
    else
        fuse_reply_statfs(request, &found);
}

/* Only attributes that programs set are stored: the kernel asks for security.capability at every
 * write, which no real client passes on; access control lists would not be enforced. */
static int xattr_error(const char *name)
{
    if (strncmp(name, "security.", 9) == 0)
        return ENODATA;
    if (strncmp(name, "system.", 7) == 0)
        return EOPNOTSUPP;
    return 0;
}

static void reply_xattr(fuse_req_t request, char *value, ssize_t n, size_t size)
{
    if (n < 0)
        fuse_reply_err(request, errno);
    else if (size == 0)
        fuse_reply_xattr(request, (size_t)n);
    else
        fuse_reply_buf(request, value, (size_t)n);
    free(value);
}

static void op_getxattr(fuse_req_t request, fuse_ino_t number, const char *name, size_t size)
{
    int error = xattr_error(name);
    if (error) {
        fuse_reply_err(request, error);
        return;
    }
    slow_serve(SLOW_XATTR);
    char *value = calloc(1, size + 1);
    struct slow_path path = slow_inode_path(slow_inode_get(number));
    errno = ENOMEM;
    reply_xattr(request, value, value ? getxattr(path.text, name, value, size) : -1, size);
}

static void op_listxattr(fuse_req_t request, fuse_ino_t number, size_t size)
{
    slow_serve(SLOW_XATTR);
    char *value = calloc(1, size + 1);
    struct slow_path path = slow_inode_path(slow_inode_get(number));
    errno = ENOMEM;
    reply_xattr(request, value, value ? listxattr(path.text, value, size) : -1, size);
}

static void op_setxattr(fuse_req_t request, fuse_ino_t number, const char *name, const char *value,
                        size_t size, int flags)
{
    if (xattr_error(name)) {
        fuse_reply_err(request, EOPNOTSUPP);
        return;
    }
    slow_serve(SLOW_XATTR);
    struct slow_path path = slow_inode_path(slow_inode_get(number));
    reply_status(request, setxattr(path.text, name, value, size, flags));
}

static void op_removexattr(fuse_req_t request, fuse_ino_t number, const char *name)
{
    int error = xattr_error(name);
    if (error) {
        fuse_reply_err(request, error);
        return;
    }
    slow_serve(SLOW_XATTR);
    struct slow_path path = slow_inode_path(slow_inode_get(number));
    reply_status(request, removexattr(path.text, name));
}

void slow_meta_operations(struct fuse_lowlevel_ops *ops)
{
    ops->lookup = op_lookup;
    ops->forget = op_forget;
    ops->forget_multi = op_forget_multi;
    ops->getattr = op_getattr;
    ops->setattr = op_setattr;
    ops->readlink = op_readlink;
    ops->mknod = op_mknod;
    ops->mkdir = op_mkdir;
    ops->symlink = op_symlink;
    ops->unlink = op_unlink;
    ops->rmdir = op_rmdir;
    ops->rename = op_rename;
    ops->link = op_link;
    ops->statfs = op_statfs;
    ops->getxattr = op_getxattr;
    ops->listxattr = op_listxattr;
    ops->setxattr = op_setxattr;
    ops->removexattr = op_removexattr;
}
