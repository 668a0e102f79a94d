/* The lab's slow file system: a pass-through with a metadata server that takes its time.
 *
 * One process per node serves that node's mount over the same backing folder. All of them share one
 * *queue*: every metadata request takes `service` nanoseconds of one of `servers` servers,
 * whichever node it comes from, so that requests wait for each other as they do at a real metadata
 * server. What the kernel answers from its own caches never gets here and costs nothing; the cache
 * times are those of MooseFS' client. Data is not slowed down.
 *
 *   slowfs.c         options, session
 *   slowfs_queue.c   the shared queue
 *   slowfs_inode.c   inodes the kernel knows, each an O_PATH descriptor
 *   slowfs_meta.c    metadata operations
 *   slowfs_data.c    files and directories that are open
 *   slowfs_lock.c    flock and POSIX locks, across nodes
 *
 * Permission checks are the kernel's (default_permissions); this process is root, and gives what it
 * makes to whoever asked.
 */
#ifndef BRG_LAB_SLOWFS_H
#define BRG_LAB_SLOWFS_H

#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/stat.h>

#include "lab/counters.h"

/* Requests that reach the server. */
#define SLOW_REQUESTS(X)    \
    X(LOOKUP, "lookup")     \
    X(GETATTR, "getattr")   \
    X(SETATTR, "setattr")   \
    X(READLINK, "readlink") \
    X(MKNOD, "mknod")       \
    X(MKDIR, "mkdir")       \
    X(SYMLINK, "symlink")   \
    X(UNLINK, "unlink")     \
    X(RMDIR, "rmdir")       \
    X(RENAME, "rename")     \
    X(LINK, "link")         \
    X(OPEN, "open")         \
    X(CREATE, "create")     \
    X(OPENDIR, "opendir")   \
    X(FSYNC, "fsync")       \
    X(STATFS, "statfs")     \
    X(XATTR, "xattr")       \
    X(LOCK, "lock")

enum slow_request {
#define SLOW_ENUM(id, name) SLOW_##id,
    SLOW_REQUESTS(SLOW_ENUM)
#undef SLOW_ENUM
    SLOW_REQUEST_KINDS
};

/* ---- slowfs_queue.c */

#define SLOW_MAX_SERVERS 128

/* One page, shared by the processes of all nodes. Times are CLOCK_MONOTONIC nanoseconds. */
struct slow_queue {
    int64_t free_at_ns[SLOW_MAX_SERVERS]; /* when each server has done what it accepted so far */
};

/* Maps the queue in file `path`, made if missing. Returns NULL with errno set. */
struct slow_queue *slow_queue_open(const char *path);

/* Accepts a request on the server that is free first; returns when its answer is due. */
int64_t slow_queue_accept(struct slow_queue *queue, int servers, int64_t service_ns,
                          int64_t now_ns);

/* Accepts a request and sleeps until its answer is due. */
void slow_queue_wait(struct slow_queue *queue, int servers, int64_t service_ns);

/* ---- slowfs_inode.c */

struct slow_lock_owner;

struct slow_inode {
    struct slow_inode *next; /* in its hash bucket */
    int fd;                  /* O_PATH */
    uint64_t dev, ino;
    uint64_t lookups; /* how often the kernel was given it and has not forgotten */
    int64_t opened_mtime_ns, opened_size; /* as of the last open: is the page cache still right? */
    struct slow_lock_owner *owners;
};

/* Takes over `backing`, an O_PATH descriptor of the folder to serve. Returns 0 or -errno. */
int slow_inode_start(int backing);

/* The inode behind a number that the kernel sends. */
struct slow_inode *slow_inode_get(fuse_ino_t number);

/* Looks `name` up in a folder and fills *entry; the kernel then holds one more reference.
 * Returns 0 or -errno. */
int slow_inode_find(struct slow_inode *parent, const char *name, struct fuse_entry_param *entry);

/* Gives n references back. */
void slow_inode_forget(fuse_ino_t number, uint64_t n);

/* Sets *keep if the file has not changed since it was last opened here, and remembers its state. */
int slow_inode_opened(struct slow_inode *inode, int *keep);

/* Room for the path under /proc of an O_PATH descriptor. */
struct slow_path {
    char text[40];
};
struct slow_path slow_inode_path(const struct slow_inode *inode);

/* ---- slowfs.c */

#define SLOW_ATTR_TIMEOUT 1.0

/* Counts a request and waits for its turn at the server. */
void slow_serve(enum slow_request kind);

void slow_count_read(uint64_t bytes);
void slow_count_written(uint64_t bytes);

/* ---- slowfs_meta.c, slowfs_data.c, slowfs_lock.c: each fills in its operations */

void slow_meta_operations(struct fuse_lowlevel_ops *ops);
void slow_data_operations(struct fuse_lowlevel_ops *ops);
void slow_lock_operations(struct fuse_lowlevel_ops *ops);

/* Gives a file just made to whoever asked for it. Returns 0 or -errno. */
int slow_meta_own(fuse_req_t request, struct slow_inode *parent, const char *name, mode_t mode);

/* Drops the POSIX locks of an owner on a file (it closed a descriptor of it), or of all owners. */
void slow_lock_release(struct slow_inode *inode, uint64_t owner);
void slow_lock_release_all(struct slow_inode *inode);

#endif
