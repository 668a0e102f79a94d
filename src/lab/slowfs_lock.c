/* Locks, valid across nodes because they are taken on the backing files.
 *
 * flock belongs to an open file: it is taken on the descriptor behind the handle. A POSIX lock
 * belongs to an owner (a process) whichever of its descriptors it came through: each owner gets one
 * descriptor per file for its locks, of the open-file-description kind, and closing that ends them.
 *
 * A wait for a lock must end when the waiter is killed, and a reply is all the kernel waits for. So
 * waiting is trying again every few milliseconds, and looking whether the request was interrupted.
 */
#include "lab/slowfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

struct slow_lock_owner {
    struct slow_lock_owner *next;
    uint64_t owner;
    int fd;
};

static pthread_mutex_t owners_lock = PTHREAD_MUTEX_INITIALIZER;

/* Sleeps a little before the next try. Returns 0, or EINTR if nobody waits any more. */
static int pause_unless_interrupted(fuse_req_t request)
{
    struct timespec little = {.tv_nsec = 3000000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &little, NULL);
    return fuse_req_interrupted(request) ? EINTR : 0;
}

static void op_flock(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *info, int op)
{
    (void)number;
    slow_serve(SLOW_LOCK);
    int error = 0;
    while (flock((int)info->fh, op | LOCK_NB) != 0) {
        error = errno;
        if (error != EWOULDBLOCK || (op & LOCK_NB))
            break;
        error = pause_unless_interrupted(request);
        if (error)
            break;
    }
    fuse_reply_err(request, error);
}

/* The descriptor that holds the locks of an owner on a file, or -errno. */
static int owner_fd(struct slow_inode *inode, uint64_t owner)
{
    int fd = -ENOMEM;
    pthread_mutex_lock(&owners_lock);
    struct slow_lock_owner *found = inode->owners;
    while (found && found->owner != owner)
        found = found->next;
    if (!found && (found = calloc(1, sizeof *found))) {
        found->owner = owner;
        found->fd = open(slow_inode_path(inode).text, O_RDWR | O_CLOEXEC);
        if (found->fd < 0) {
            fd = -errno;
            free(found);
            found = NULL;
        } else {
            found->next = inode->owners;
            inode->owners = found;
        }
    }
    if (found)
        fd = found->fd;
    pthread_mutex_unlock(&owners_lock);
    return fd;
}

void slow_lock_release(struct slow_inode *inode, uint64_t owner)
{
    pthread_mutex_lock(&owners_lock);
    struct slow_lock_owner **link = &inode->owners;
    while (*link && (*link)->owner != owner)
        link = &(*link)->next;
    struct slow_lock_owner *found = *link;
    if (found)
        *link = found->next;
    pthread_mutex_unlock(&owners_lock);
    if (found) {
        close(found->fd);
        free(found);
    }
}

void slow_lock_release_all(struct slow_inode *inode)
{
    while (inode->owners)
        slow_lock_release(inode, inode->owners->owner);
}

static void op_getlk(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *info,
                     struct flock *lock)
{
    slow_serve(SLOW_LOCK);
    int fd = owner_fd(slow_inode_get(number), info->lock_owner);
    lock->l_pid = 0;
    if (fd < 0)
        fuse_reply_err(request, -fd);
    else if (fcntl(fd, F_OFD_GETLK, lock) != 0)
        fuse_reply_err(request, errno);
    else
        fuse_reply_lock(request, lock);
}

static void op_setlk(fuse_req_t request, fuse_ino_t number, struct fuse_file_info *info,
                     struct flock *lock, int wait)
{
    slow_serve(SLOW_LOCK);
    int fd = owner_fd(slow_inode_get(number), info->lock_owner);
    if (fd < 0) {
        fuse_reply_err(request, -fd);
        return;
    }
    int error = 0;
    lock->l_pid = 0;
    while (fcntl(fd, F_OFD_SETLK, lock) != 0) {
        error = errno;
        if ((error != EAGAIN && error != EACCES) || !wait)
            break;
        error = pause_unless_interrupted(request);
        if (error)
            break;
    }
    fuse_reply_err(request, error);
}

void slow_lock_operations(struct fuse_lowlevel_ops *ops)
{
    ops->flock = op_flock;
    ops->getlk = op_getlk;
    ops->setlk = op_setlk;
}
