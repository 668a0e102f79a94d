/* Files and directories that are open. Opening is a metadata request; moving data is not. */
#include "lab/slowfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

struct folder {
    DIR *stream;
    struct dirent *held; /* read, but did not fit into the last answer */
    off_t at;
};

/* How the file behind is opened for a program that opens with `flags`. O_DIRECT is between the
 * program and the kernel of its node: our own buffers are not aligned as the disk would have it. */
static int behind(int flags)
{
    return (flags & ~(O_NOFOLLOW | O_DIRECT)) | O_CLOEXEC;
}

/* Opens the file behind an inode. Returns a descriptor or -errno. */
static int reopen(struct slow_inode *inode, int flags)
{
    int fd = open(slow_inode_path(inode).text, behind(flags));
    return fd < 0 ? -errno : fd;
}

static void op_open(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *info)
{
    slow_serve(SLOW_OPEN);
    struct slow_inode *inode = slow_inode_get(number);
    int fd = reopen(inode, info->flags);
    if (fd < 0) {
        fuse_reply_err(request, -fd);
        return;
    }
    int keep = 0;
    slow_inode_opened(inode, &keep);
    info->fh = (uint64_t)fd;
    info->keep_cache = keep != 0;
    if (fuse_reply_open(request, info) == -ENOENT)
        close(fd);
}

static void op_create(fuse_req_t request, fuse_ino_t number, const char *name, mode_t mode,
                      struct fuse_file_info *info)
{
    slow_serve(SLOW_CREATE);
    struct slow_inode *parent = slow_inode_get(number);
    /* O_EXCL tells whether it is ours to give away; without it an existing file is opened */
    int flags = behind(info->flags) | O_CREAT;
    int fd = openat(parent->fd, name, flags | O_EXCL, mode);
    int made = fd >= 0;
    if (!made && errno == EEXIST && !(info->flags & O_EXCL))
        fd = openat(parent->fd, name, flags, mode);
    if (fd < 0) {
        fuse_reply_err(request, errno);
        return;
    }
    struct fuse_entry_param entry;
    int result = made ? slow_meta_own(request, parent, name, S_IFREG | mode) : 0;
    if (result == 0)
        result = slow_inode_find(parent, name, &entry);
    if (result != 0) {
        close(fd);
        fuse_reply_err(request, -result);
        return;
    }
    info->fh = (uint64_t)fd;
    if (fuse_reply_create(request, &entry, info) == -ENOENT) {
        close(fd);
        slow_inode_forget(entry.ino, 1);
    }
}

static void op_read(fuse_req_t request, fuse_ino_t number, size_t size, off_t offset,
                    struct fuse_file_info *info)
{
    (void)number;
    char *bytes = malloc(size);
    errno = ENOMEM;
    ssize_t n = bytes ? pread((int)info->fh, bytes, size, offset) : -1;
    if (n < 0) {
        fuse_reply_err(request, errno);
    } else {
        slow_count_read((uint64_t)n);
        fuse_reply_buf(request, bytes, (size_t)n);
    }
    free(bytes);
}

static void op_write_buf(fuse_req_t request, fuse_ino_t number, struct fuse_bufvec *from,
                         off_t offset, struct fuse_file_info *info)
{
    (void)number;
    struct fuse_bufvec to = FUSE_BUFVEC_INIT(fuse_buf_size(from));
    to.buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK;
    to.buf[0].fd = (int)info->fh;
    to.buf[0].pos = offset;
    ssize_t n = fuse_buf_copy(&to, from, 0);
    if (n < 0) {
        fuse_reply_err(request, (int)-n);
    } else {
        slow_count_written((uint64_t)n);
        fuse_reply_write(request, (size_t)n);
    }
}

/* Sent when a descriptor is closed: that is when its owner's POSIX locks end. */
static void op_flush(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *info)
{
    slow_lock_release(slow_inode_get(number), info->lock_owner);
    int copy = dup((int)info->fh); /* closing a copy is what makes the backing file report errors */
    fuse_reply_err(request, copy < 0 || close(copy) != 0 ? errno : 0);
}

static void op_release(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *info)
{
    (void)number;
    close((int)info->fh);
    fuse_reply_err(request, 0);
}

static void op_fsync(fuse_req_t request, fuse_ino_t number, int data_only,
                     struct fuse_file_info *info)
{
    (void)number;
    slow_serve(SLOW_FSYNC);
    int fd = (int)info->fh;
    fuse_reply_err(request, (data_only ? fdatasync(fd) : fsync(fd)) == 0 ? 0 : errno);
}

static void op_fallocate(fuse_req_t request, fuse_ino_t number, int mode, off_t offset,
                         off_t length, struct fuse_file_info *info)
{
    (void)number;
    fuse_reply_err(request, fallocate((int)info->fh, mode, offset, length) == 0 ? 0 : errno);
}

static struct folder *folder_of(const struct fuse_file_info *info)
{
    return (struct folder *)(uintptr_t)info->fh;
}

static void close_folder(struct folder *folder)
{
    closedir(folder->stream);
    free(folder);
}

static void op_opendir(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *info)
{
    slow_serve(SLOW_OPENDIR);
    int fd = openat(slow_inode_get(number)->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        fuse_reply_err(request, errno);
        return;
    }
    struct folder *folder = calloc(1, sizeof *folder);
    if (folder)
        folder->stream = fdopendir(fd);
    if (!folder || !folder->stream) {
        fuse_reply_err(request, errno);
        close(fd);
        free(folder);
        return;
    }
    info->fh = (uintptr_t)folder;
    if (fuse_reply_open(request, info) == -ENOENT)
        close_folder(folder);
}

/* Fills buf with entries from `offset` on; the whole listing was paid for when it was opened. */
static ssize_t fill(fuse_req_t request, struct folder *folder, char *buf, size_t size, off_t offset)
{
    size_t used = 0;
    if (offset != folder->at) {
        seekdir(folder->stream, offset);
        folder->held = NULL;
        folder->at = offset;
    }
    for (;;) {
        errno = 0;
        struct dirent *entry = folder->held ? folder->held : readdir(folder->stream);
        if (!entry)
            return errno != 0 && used == 0 ? -errno : (ssize_t)used;
        struct stat attr = {.st_ino = entry->d_ino, .st_mode = (mode_t)entry->d_type << 12};
        size_t n =
            fuse_add_direntry(request, buf + used, size - used, entry->d_name, &attr, entry->d_off);
        if (n > size - used) {
            folder->held = entry;
            return (ssize_t)used;
        }
        used += n;
        folder->held = NULL;
        folder->at = entry->d_off;
    }
}

static void op_readdir(fuse_req_t request, fuse_ino_t number, size_t size, off_t offset,
                       struct fuse_file_info *info)
{
    (void)number;
    char *buf = malloc(size);
    ssize_t n = buf ? fill(request, folder_of(info), buf, size, offset) : -ENOMEM;
    if (n < 0)
        fuse_reply_err(request, (int)-n);
    else
        fuse_reply_buf(request, buf, (size_t)n);
    free(buf);
}

static void op_releasedir(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *info)
{
    (void)number;
    close_folder(folder_of(info));
    fuse_reply_err(request, 0);
}

static void op_fsyncdir(fuse_req_t request, fuse_ino_t number, int data_only,
                        struct fuse_file_info *info)
{
    (void)number;
    (void)data_only;
    slow_serve(SLOW_FSYNC);
    fuse_reply_err(request, fsync(dirfd(folder_of(info)->stream)) == 0 ? 0 : errno);
}

void slow_data_operations(struct fuse_lowlevel_ops *ops)
{
    ops->open = op_open;
    ops->create = op_create;
    ops->read = op_read;
    ops->write_buf = op_write_buf;
    ops->flush = op_flush;
    ops->release = op_release;
    ops->fsync = op_fsync;
    ops->fallocate = op_fallocate;
    ops->opendir = op_opendir;
    ops->readdir = op_readdir;
    ops->releasedir = op_releasedir;
    ops->fsyncdir = op_fsyncdir;
}
