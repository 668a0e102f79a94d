/* Blocks that are read into, at once or in the background. All but fill_now is for a locked file.
 */
#ifndef BRG_BUFFER_FILL_H
#define BRG_BUFFER_FILL_H

#include "buffer/file.h"

/* The block that has, or will have, the byte at `at`; NULL if none. */
struct read_block *fill_covering(struct file *f, uint64_t at);

/* A block for `want` bytes (no more than the rule's size) at `at`, already marked as being filled,
 * in the place of the one that was begun first; NULL if all are being filled, or without memory. */
struct read_block *fill_begin(struct file *f, uint64_t at, uint64_t want);
/* Reads them, without the lock. Bytes, fewer at the end of the file, or -errno. */
int64_t fill_now(struct file *f, struct desc *d, int fd, struct read_block *r);
/* They are there. Nothing is kept of a failure, of no bytes, and of what has been written over. */
void fill_end(struct file *f, struct read_block *r, int64_t got);
void fill_undo(struct file *f, struct read_block *r);

/* How many bytes to read at `at` for a call that asked for so many: four times as many as the last
 * time, up to the rule's size, or to what a processor's cache holds while storage is fast. */
uint64_t fill_window(struct desc *d, uint64_t at, uint64_t asked);

/* Has the background read what follows the block `last`, d->depth blocks or those of the rule. */
void fill_ahead(struct desc *d, const struct read_block *last);

#endif
