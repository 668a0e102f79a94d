/* Whole reads and writes at an offset: EINTR and short transfers are dealt with here. */
#ifndef BRG_BASE_IO_H
#define BRG_BASE_IO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Reads until n bytes or the end of the file. Returns the bytes read, or -errno. */
ssize_t brg_io_pread(int fd, void *buf, size_t n, uint64_t offset);

/* Writes n bytes. Returns 0, or -errno with *done (may be NULL) bytes written before. */
int brg_io_pwrite(int fd, const void *buf, size_t n, uint64_t offset, size_t *done);

/* The same by a system call of the caller's (pwrite itself, or one that fails as a test wants). */
typedef ssize_t brg_io_pwrite_call(int fd, const void *buf, size_t n, off_t offset);
int brg_io_pwrite_by(brg_io_pwrite_call *call, int fd, const void *buf, size_t n, uint64_t offset,
                     size_t *done);

/* Makes a rename inside the folder of `path` durable. Returns 0 or -errno. In two steps, of which
 * the first (a descriptor or -errno) comes before the rename: a folder that may be written to need
 * not be open to reading. The second closes it. */
int brg_io_open_folder_of(const char *path);
int brg_io_sync_folder(int fd);
int brg_io_sync_folder_of(const char *path);

#endif
