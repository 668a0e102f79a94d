/* What a writer holds between create and commit. Internal to src/image. */
#ifndef BRG_IMAGE_WRITER_H
#define BRG_IMAGE_WRITER_H

#include "brigade/image.h"
#include "image/format.h"

struct writer_item {
    struct brg_entry entry; /* path, target, parent and children are filled in by the build */
    char *path, *target, *source;
    void *data;
};

struct writer_answer {
    uint64_t context;
    char *requester, *name, *path; /* path "": nothing was found */
};

struct writer_bytes {
    void *bytes;
    size_t n;
};

struct brg_image_writer {
    char *path, *temporary;
    int fd;
    struct brg_image *base; /* an older image, or NULL */
    struct brg_image_options options;
    struct writer_item *items;
    struct writer_answer *answers;
    char **roots;
    size_t n_items, n_answers, n_roots;
    size_t room_items, room_answers, room_roots;
    struct writer_bytes python, meta;
};

/* Sorts items (parents first, siblings together, absences last), answers and roots, and drops
 * repeated answers and roots. Returns 0, or -EEXIST for two entries or answers that differ. */
int brg_writer_sort(struct brg_image_writer *w, struct brg_error *err);

/* Bytes of the index if it has n_contents contents. */
uint64_t brg_writer_index_bytes(const struct brg_image_writer *w, size_t n_contents);

/* Builds the index of a sorted writer; the caller frees it. Returns 0, -EINVAL for an entry under
 * something that is no directory, -EOVERFLOW or -ENOMEM. */
int brg_writer_build_index(const struct brg_image_writer *w, const struct brg_content *contents,
                           size_t n_contents, struct brg_index **index, struct brg_error *err);

#endif
