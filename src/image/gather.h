/* Reading the sources of an image once, in order, into the raw stream; equal contents once. */
#ifndef BRG_IMAGE_GATHER_H
#define BRG_IMAGE_GATHER_H

#include "image/base.h"
#include "image/compress.h"
#include "image/writer.h"

struct gather {
    struct brg_image_writer *w;
    struct compressor *out;
    const struct brg_image *base; /* whose contents come first; or NULL */
    int base_failed;              /* result: the base is at fault */
    brg_image_progress *progress;
    brg_image_lost *lost;
    void *user;
    uint64_t done, total;
    struct brg_content *contents; /* result; the base's, and at most one for each item read */
    uint32_t n_contents;
};

/* Items that have a source and no content yet, and the sum of their sizes. */
void gather_measure(const struct brg_image_writer *w, size_t *n_sources, uint64_t *bytes);

/* Copies the base's contents, then reads those sources in order of first use. Sets content and
 * BRG_HAS_CONTENT of the items, and contents (the caller frees them, also on failure). */
int gather_run(struct gather *g, size_t n_sources, struct brg_error *err);

#endif
