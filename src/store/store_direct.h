/* Writing past the page cache: O_DIRECT from a few aligned buffers, several at once by io_uring
 * where the kernel has it. What it cannot write (edges, refusals, errors) is left to the ordinary
 * way, which then knows the error and its place. */
#ifndef BRG_IO_STORE_DIRECT_H
#define BRG_IO_STORE_DIRECT_H

#include <stddef.h>
#include <stdint.h>

#define DIRECT_ALIGN 4096u
#define DIRECT_BUFFERS 4u
#define DIRECT_LEAST (1u << 20) /* a write of fewer bytes gains nothing */

struct direct;

/* Of a file that is there. memory: bytes for all buffers. 0; or -errno where it cannot be done:
 * then nothing was changed. uring 0: one buffer at a time. */
int direct_open(struct direct **direct, const char *path, size_t memory, int uring);
void direct_close(struct direct *direct);

/* Writes what it can of the `bytes` at `offset`, a multiple of DIRECT_ALIGN, from the beginning on;
 * returns how many bytes are written. */
size_t direct_write(struct direct *direct, const void *buf, size_t bytes, uint64_t offset);

#endif
