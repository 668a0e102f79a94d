/* Reading past the kernel's page cache, by O_DIRECT, where a rule says `direct`.
 *
 * On FUSE a read through the page cache is cut into requests of the kernel's read-ahead (128 KiB),
 * each of which wakes a process; then the bytes are copied once more. Past it, one request brings
 * as much as was asked for (1 MiB on most), into the buffer. But whoever reads them next asks the
 * server again: on one node, other processes too. So nobody supposes it, the user says it; and what
 * the cache has comes from there. FUSE only: there, O_DIRECT has no rules of alignment that another
 * call on the same description could break meanwhile. And only of descriptions that cannot write.
 *
 * The descriptor is the program's own: a second one would be seen in /proc/self/fd, and cost a
 * request to open it. It has the flag only while bytes are being filled, and nobody who waits for
 * file_quiet (drop, close, fork, exec) finds it; the hook of fcntl hides it. A file system that
 * refuses such reads is read through the cache from then on: direct_refused().
 */
#ifndef BRG_BUFFER_DIRECT_H
#define BRG_BUFFER_DIRECT_H

#include "buffer/file.h"

/* Of a file that is begun to be buffered by fd: whether it is on FUSE, and may be read so. */
void direct_opened(struct file *f, int fd);

/* Around the reads that fill r, without the file's lock. Returns whether they go past the cache;
 * only then direct_end is called. */
int direct_begin(struct file *f, struct desc *d, int fd, const struct read_block *r);
void direct_end(const struct file *f, struct desc *d, int fd);

/* Of a locked file: whether `r`, what a read into the program's own memory returned, may be due to
 * the flag that another fill needed. Then there is none any more; the read is made again. */
int direct_refused(struct file *f, long r);

#endif
