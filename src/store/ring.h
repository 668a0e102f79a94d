/* Writes that the kernel makes while we go on: io_uring(7), where it is had. A ring is one
 * thread's. */
#ifndef BRG_IO_RING_H
#define BRG_IO_RING_H

#include <stddef.h>
#include <stdint.h>

struct ring;

/* For `entries` writes at a time. NULL where the kernel has no such thing, or forbids it (as in
 * many containers), or what was compiled knows none. */
struct ring *ring_open(unsigned entries);
void ring_close(struct ring *ring); /* NULL: nothing */

/* Begins to write `bytes` at `offset` of fd; `tag` comes back with its end. 0, or -EIO: it was not
 * begun. */
int ring_write(struct ring *ring, int fd, const void *buf, size_t bytes, uint64_t offset,
               uint64_t tag);

/* Waits for the end of one write that was begun: its tag, and in *result the bytes that were
 * written, or -errno. */
uint64_t ring_reap(struct ring *ring, long *result);

#endif
