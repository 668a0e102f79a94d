/* Contents of an older image, taken over as they are.
 *
 * Their blocks come first, in their order, so that every content keeps its place in the raw
 * stream, and what is new is appended. What no entry names any more stays behind in it; if that is
 * too much, nothing is taken over and the image is as if there had been no base.
 */
#include "image/base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

int brg_image_writer_set_base(struct brg_image_writer *w, const char *path, struct brg_error *err)
{
    struct brg_image *base = NULL;
    int rc = brg_image_open(path, &base, err);
    if (rc != 0)
        return rc;
    brg_image_close(w->base);
    w->base = base;
    return 0;
}

/* A source is what it was when the base was made: as freshness sees it, and the same inode. */
static int is_unchanged(const struct brg_entry *was, const struct brg_entry *is)
{
    return was->kind == BRG_FILE && was->content != BRG_NONE && was->size == is->size &&
           was->mtime_ns == is->mtime_ns && was->ctime_ns == is->ctime_ns && was->ino == is->ino;
}

static uint64_t give_contents(struct brg_image_writer *w, char *used)
{
    const struct brg_index *x = w->base->index;
    const struct brg_content *contents = brg_contents(x);
    uint64_t useful = 0;
    for (size_t i = 0; i < w->n_items; i++) {
        struct writer_item *item = &w->items[i];
        uint32_t e = item->source ? brg_index_find(x, item->path, strlen(item->path)) : BRG_NONE;
        if (e == BRG_NONE || !is_unchanged(&brg_entries(x)[e], &item->entry))
            continue;
        uint32_t content = brg_entries(x)[e].content;
        item->entry.content = content;
        item->entry.flags |= BRG_HAS_CONTENT;
        if (!used[content])
            useful += contents[content].size;
        used[content] = 1;
    }
    return useful;
}

void base_forget(struct brg_image_writer *w)
{
    for (size_t i = 0; i < w->n_items; i++) {
        w->items[i].entry.content = BRG_NONE;
        w->items[i].entry.flags &= (uint8_t)~BRG_HAS_CONTENT;
    }
}

const struct brg_image *base_plan(struct brg_image_writer *w)
{
    if (!w->base || w->base->header->block_bytes != w->options.block_bytes)
        return NULL;
    uint64_t raw_bytes = w->base->header->raw_bytes;
    char *used = calloc(w->base->index->n_contents + 1, 1);
    uint64_t useful = used ? give_contents(w, used) : 0;
    free(used);
    if (useful > 0 && useful >= raw_bytes - raw_bytes / 4)
        return w->base;
    base_forget(w);
    return NULL;
}

int base_copy(const struct brg_image *base, uint32_t number, struct compressor *out,
              int *base_failed, struct brg_error *err)
{
    const struct brg_block *b = &base->blocks[number];
    if (b->raw_bytes < base->header->block_bytes) { /* what comes next goes on in it */
        size_t n;
        void *to = compressor_room(out, &n);
        int rc = brg_image_read_block(base, number, to, &n, err);
        *base_failed = rc != 0;
        return rc == 0 ? compressor_advance(out, n, err) : rc;
    }
    void *packed = malloc(b->bytes);
    if (!packed)
        return brg_error_set(err, -ENOMEM, "no memory to copy blocks of %s", base->path);
    int rc = brg_image_read_packed(base, number, packed, err);
    *base_failed = rc != 0;
    if (rc == 0)
        rc = compressor_copy(out, b, packed, err);
    free(packed);
    return rc;
}
