/* System calls of the store: whole, within the process's own limits, with the faults of tests. */
#ifndef BRG_IO_STORE_IO_H
#define BRG_IO_STORE_IO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "brigade/error.h"

/* Fills *err: "cannot VERB PATH[ at byte OFFSET]: ..."; offset -1 where none can be named. Returns
 * code. */
int store_failed(struct brg_error *err, int code, const char *path, int64_t offset,
                 const char *verb);

/* Each returns 0 or -errno (open: a descriptor). A write stops at RLIMIT_FSIZE with -EFBIG rather
 * than raise SIGXFSZ, which would end the program. *done (may be NULL): bytes written before. */
int store_io_open(const char *path, int flags, unsigned mode);
/* Another descriptor of what fd is, without asking the file system. */
int store_io_again(int fd);
/* Bytes read, fewer than n only where the file ends; -errno. Another node may have made it longer,
 * and this node's client of a network file system not say so yet, even to one who has just opened
 * it: where it seems to end, its size is asked for past the client's caches. */
ssize_t store_io_read(int fd, void *buf, size_t n, uint64_t offset);
/* The same of its size: type, mode, owner, links, inode, device and size of `path`, or of fd where
 * that is NULL. */
int store_io_stat(int fd, const char *path, struct stat *st);
/* Of a symbolic link its own. */
int store_io_stat_link(const char *path, struct stat *st);
int store_io_write(int fd, const void *buf, size_t bytes, uint64_t offset, size_t *done);
/* RLIMIT_FSIZE as it is now, UINT64_MAX for none; and the write of somebody who knows it. */
uint64_t store_io_limit(void);
int store_io_write_below(uint64_t limit, int fd, const void *buf, size_t bytes, uint64_t offset,
                         size_t *done);
/* Whether a write can only end as the file system ends it: no limit, no fault. */
int store_io_plain(void);
int store_io_resize(int fd, uint64_t size);
int store_io_sync(int fd);
int store_io_close(int fd);
int store_io_rename(const char *from, const char *to, int replace);

#endif
