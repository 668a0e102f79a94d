/* What descriptors lead to, and whether it may be buffered. Nothing here asks a server for more
 * than the kernel has at hand, but for the kind of a file system, once. */
#ifndef BRG_BUFFER_INODE_H
#define BRG_BUFFER_INODE_H

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* The type bits of what fd leads to, with its identity; 0 if it leads nowhere. */
mode_t inode_of(int fd, dev_t *dev, ino_t *ino);

/* How long the kernel believes the file to be, which may be out of date. */
uint64_t inode_size(int fd);

/* Left to the kernel for good, since it was used in a way that buffers cannot follow. */
void inode_ban(dev_t dev, ino_t ino);
int inode_is_banned(dev_t dev, ino_t ino);

/* Whether its files are made up when they are read, as those of /proc are. */
int inode_is_made_up(int fd, dev_t dev);

/* Whether a process serves its file system, through the kernel's FUSE. */
int inode_is_on_fuse(int fd, dev_t dev);

/* Whether a descriptor other than fd that is not buffered leads there: opened before, inherited,
 * received. Whatever is done with it would go by the buffers. */
int inode_is_open_elsewhere(int fd, dev_t dev, ino_t ino);

#endif
