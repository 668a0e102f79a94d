/* The inodes that the kernel knows: a hash table from (device, number) to an O_PATH descriptor.
 *
 * The number given to the kernel is the address of the struct. A held descriptor keeps the backing
 * inode from being reused, so an address stands for one file as long as the kernel may use it.
 */
#include "lab/slowfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUCKETS 16384

static struct slow_inode root;
static struct slow_inode *buckets[BUCKETS];
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

static struct slow_inode **bucket_of(uint64_t dev, uint64_t ino)
{
    return &buckets[((ino ^ dev) * UINT64_C(0x9e3779b97f4a7c15)) >> 50];
}

int slow_inode_start(int backing)
{
    struct stat found;
    if (fstatat(backing, "", &found, AT_EMPTY_PATH) != 0)
        return -errno;
    root.fd = backing;
    root.dev = found.st_dev;
    root.ino = found.st_ino;
    root.lookups = 1;
    return 0;
}

struct slow_inode *slow_inode_get(fuse_ino_t number)
{
    return number == FUSE_ROOT_ID ? &root : (struct slow_inode *)(uintptr_t)number;
}

/* Under the lock: the known inode, or a new one that takes over fd, or NULL without memory. */
static struct slow_inode *find_or_add(int fd, const struct stat *found, int *taken)
{
    struct slow_inode **bucket = bucket_of(found->st_dev, found->st_ino);
    *taken = 0;
    for (struct slow_inode *inode = *bucket; inode; inode = inode->next)
        if (inode->ino == found->st_ino && inode->dev == found->st_dev)
            return inode;
    struct slow_inode *inode = calloc(1, sizeof *inode);
    if (!inode)
        return NULL;
    inode->fd = fd;
    inode->dev = found->st_dev;
    inode->ino = found->st_ino;
    inode->opened_mtime_ns = -1;
    inode->next = *bucket;
    *bucket = inode;
    *taken = 1;
    return inode;
}

int slow_inode_find(struct slow_inode *parent, const char *name, struct fuse_entry_param *entry)
{
    int fd = openat(parent->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    struct stat found;
    if (fstatat(fd, "", &found, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0) {
        int error = errno;
        close(fd);
        return -error;
    }
    int taken;
    pthread_mutex_lock(&table_lock);
    struct slow_inode *inode = find_or_add(fd, &found, &taken);
    if (inode)
        inode->lookups++;
    pthread_mutex_unlock(&table_lock);
    if (!taken)
        close(fd);
    if (!inode)
        return -ENOMEM;
    memset(entry, 0, sizeof *entry);
    entry->ino = (uintptr_t)inode;
    entry->attr = found;
    entry->attr_timeout = SLOW_ATTR_TIMEOUT;
    /* as MooseFS' client: names of folders are believed for a second, names of files not at all */
    entry->entry_timeout = S_ISDIR(found.st_mode) ? SLOW_ATTR_TIMEOUT : 0.0;
    return 0;
}

void slow_inode_forget(fuse_ino_t number, uint64_t n)
{
    struct slow_inode *inode = slow_inode_get(number);
    if (inode == &root)
        return;
    pthread_mutex_lock(&table_lock);
    inode->lookups -= n < inode->lookups ? n : inode->lookups;
    int gone = inode->lookups == 0;
    if (gone) {
        struct slow_inode **link = bucket_of(inode->dev, inode->ino);
        while (*link != inode)
            link = &(*link)->next;
        *link = inode->next;
    }
    pthread_mutex_unlock(&table_lock);
    if (gone) {
        slow_lock_release_all(inode);
        close(inode->fd);
        free(inode);
    }
}

int slow_inode_opened(struct slow_inode *inode, int *keep)
{
    struct stat now;
    if (fstatat(inode->fd, "", &now, AT_EMPTY_PATH) != 0)
        return -errno;
    int64_t mtime_ns = (int64_t)now.st_mtim.tv_sec * 1000000000 + now.st_mtim.tv_nsec;
    pthread_mutex_lock(&table_lock);
    *keep = inode->opened_mtime_ns == mtime_ns && inode->opened_size == now.st_size;
    inode->opened_mtime_ns = mtime_ns;
    inode->opened_size = now.st_size;
    pthread_mutex_unlock(&table_lock);
    return 0;
}

struct slow_path slow_inode_path(const struct slow_inode *inode)
{
    struct slow_path path;
    snprintf(path.text, sizeof path.text, "/proc/self/fd/%d", inode->fd);
    return path;
}
