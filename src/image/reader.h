/* What an open image holds. Internal to src/image. */
#ifndef BRG_IMAGE_READER_H
#define BRG_IMAGE_READER_H

#include "brigade/image.h"
#include "image/format.h"

struct brg_image {
    int fd;
    char *path;
    void *head; /* header, index, block table: checked */
    const struct brg_image_header *header;
    const struct brg_index *index;
    const struct brg_block *blocks;
};

/* Reads the bytes of a block that is there as they lie in the file, verified. */
int brg_image_read_packed(const struct brg_image *i, uint32_t block, void *packed,
                          struct brg_error *err);

#endif
