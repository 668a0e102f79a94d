/* The raw stream on its way into the file: cut into blocks, compressed by several threads,
 * written in order. Memory is bounded: about two blocks a thread, whatever the size. */
#ifndef BRG_IMAGE_COMPRESS_H
#define BRG_IMAGE_COMPRESS_H

#include "brigade/image.h"
#include "image/format.h"

struct compressor;

/* Blocks go to `fd` from `data_off`; at most max_blocks of them. `name` is for error texts and
 * must outlive the compressor. */
int compressor_create(int fd, const char *name, uint64_t data_off,
                      const struct brg_image_options *options, uint64_t max_blocks,
                      struct compressor **c, struct brg_error *err);
void compressor_destroy(struct compressor *c);

/* Room for the next raw bytes, *room of them (at least 1); then say how many were filled in. */
void *compressor_room(struct compressor *c, size_t *room);
int compressor_advance(struct compressor *c, size_t n, struct brg_error *err);

/* Puts a whole block that is packed already, as `from` says; before any raw byte was given. */
int compressor_copy(struct compressor *c, const struct brg_block *from, const void *packed,
                    struct brg_error *err);

/* Raw bytes so far. */
uint64_t compressor_raw_bytes(const struct compressor *c);

/* Writes what is left. The table belongs to the compressor; *end is the offset after the last
 * block. */
int compressor_finish(struct compressor *c, const struct brg_block **blocks, uint32_t *n_blocks,
                      uint64_t *end, struct brg_error *err);

#endif
