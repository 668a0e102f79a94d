/* Reading the sources of an image once, in order, into the raw stream; equal contents once. */
#ifndef BRG_IMAGE_GATHER_H
#define BRG_IMAGE_GATHER_H

#include "image/compress.h"
#include "image/writer.h"

struct gather {
    struct brg_image_writer *w;
    struct compressor *out;
    brg_image_progress *progress;
    brg_image_lost *lost;
    void *user;
    uint64_t done, total;
    struct brg_content *contents; /* result; at most one for each item with a source */
    uint32_t n_contents;
};

/* Items that have a source, and the sum of their sizes. */
void gather_measure(const struct brg_image_writer *w, size_t *n_sources, uint64_t *bytes);

/* Reads every source in order of first use. Sets content and BRG_HAS_CONTENT of the items, and
 * contents (the caller frees them, also on failure). */
int gather_run(struct gather *g, size_t n_sources, struct brg_error *err);

#endif
