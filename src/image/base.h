/* Contents of an older image (the base), taken over as they are: most of what a new image of the
 * same program holds was in the one before, and its sources need not be read again. */
#ifndef BRG_IMAGE_BASE_H
#define BRG_IMAGE_BASE_H

#include "image/compress.h"
#include "image/reader.h"
#include "image/writer.h"

/* Gives every item whose source is what the base says of it (size, times, inode) its content of
 * there. Returns the base, or NULL if it is not worth it: none was set, its blocks have another
 * size, or more than a quarter of its bytes would serve nobody. The writer is sorted. */
const struct brg_image *base_plan(struct brg_image_writer *w);

/* Takes the contents away again that base_plan gave. */
void base_forget(struct brg_image_writer *w);

/* Puts a block of the base as it is packed, verified; all are put, in their order, before
 * anything else. *base_failed is set if the base is at fault, not what is written. */
int base_copy(const struct brg_image *base, uint32_t number, struct compressor *out,
              int *base_failed, struct brg_error *err);

#endif
