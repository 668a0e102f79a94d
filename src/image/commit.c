/* From a writer to a file that is complete, synced, and under its name; or no file at all.
 *
 * The index comes before the blocks in the file, but is known only after all contents were read:
 * equal contents share, and a source may be lost. Its size is bounded by one content per source
 * that is read and those of the base, so that much room is left, and what is not needed stays zero.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/error.h"
#include "base/io.h"
#include "image/gather.h"

struct places {
    uint64_t table_off, data_off, max_blocks;
};

static uint64_t whole_pages(uint64_t n)
{
    return (n + BRG_PAGE - 1) / BRG_PAGE * BRG_PAGE;
}

static int plan_places(const struct brg_image_writer *w, size_t n_contents, uint64_t raw_bytes,
                       struct places *p, struct brg_error *err)
{
    p->max_blocks = raw_bytes / w->options.block_bytes + 1;
    if (p->max_blocks >= UINT32_MAX / 4)
        return brg_error_set(err, -EOVERFLOW,
                             "%s would have too many blocks: choose a larger block "
                             "size",
                             w->path);
    p->table_off = BRG_PAGE + whole_pages(brg_writer_index_bytes(w, n_contents));
    p->data_off = p->table_off + whole_pages(p->max_blocks * sizeof(struct brg_block));
    return 0;
}

static int put(const struct brg_image_writer *w, const void *bytes, size_t n, uint64_t offset,
               struct brg_error *err)
{
    int rc = brg_io_pwrite(w->fd, bytes, n, offset, NULL);
    if (rc != 0)
        return brg_error_system(err, rc, "cannot write %s at offset %llu", w->path,
                                (unsigned long long)offset);
    return 0;
}

/* Everything around the blocks. The header goes last, so that what lies in the temporary file
 * before is no image. */
static int put_frame(const struct brg_image_writer *w, const struct places *p,
                     const struct brg_index *x, const struct brg_block *blocks, uint32_t n_blocks,
                     uint64_t data_end, uint64_t raw_bytes, char id[BRG_ID_TEXT],
                     struct brg_error *err)
{
    _Alignas(8) char page[BRG_PAGE] = {0};
    struct brg_image_header *h = (struct brg_image_header *)page;
    XXH128_hash_t hash = XXH3_128bits(x, x->bytes);
    h->magic = BRG_IMAGE_MAGIC;
    h->version = BRG_IMAGE_VERSION;
    h->header_bytes = sizeof *h;
    h->id[0] = hash.low64;
    h->id[1] = hash.high64;
    h->index_off = BRG_PAGE;
    h->index_bytes = x->bytes;
    h->table_off = p->table_off;
    h->data_off = p->data_off;
    h->trailer_off = data_end;
    h->total_bytes = data_end + sizeof(struct brg_image_trailer);
    h->raw_bytes = raw_bytes;
    h->block_bytes = w->options.block_bytes;
    h->n_blocks = n_blocks;
    h->codec = BRG_ZSTD;
    h->table_checksum = XXH3_64bits(blocks, n_blocks * sizeof *blocks);
    h->checksum = brg_header_checksum(page);
    struct brg_image_trailer t = {BRG_TRAILER_MAGIC, {h->id[0], h->id[1]}, h->total_bytes};

    int rc = put(w, x, x->bytes, h->index_off, err);
    if (rc == 0)
        rc = put(w, blocks, n_blocks * sizeof *blocks, h->table_off, err);
    if (rc == 0)
        rc = put(w, &t, sizeof t, h->trailer_off, err);
    if (rc == 0)
        rc = put(w, page, sizeof page, 0, err);
    if (rc == 0)
        brg_id_text(h->id, id);
    return rc;
}

static int publish(struct brg_image_writer *w, struct brg_error *err)
{
    if (fsync(w->fd) != 0)
        return brg_error_system(err, -errno, "cannot sync %s", w->path);
    if (rename(w->temporary, w->path) != 0)
        return brg_error_system(err, -errno, "cannot rename %s to %s", w->temporary, w->path);
    close(w->fd);
    w->fd = -1;
    int rc = brg_io_sync_folder_of(w->path);
    return rc == 0 ? 0 : brg_error_system(err, rc, "cannot sync the folder of %s", w->path);
}

static int write_all(struct brg_image_writer *w, struct gather *g, const struct places *p,
                     size_t n_sources, char id[BRG_ID_TEXT], struct brg_error *err)
{
    const struct brg_block *blocks = NULL;
    struct brg_index *x = NULL;
    uint32_t n_blocks = 0;
    uint64_t end = 0;
    int rc = gather_run(g, n_sources, err);
    if (rc == 0)
        rc = compressor_finish(g->out, &blocks, &n_blocks, &end, err);
    if (rc == 0)
        rc = brg_writer_build_index(w, g->contents, g->n_contents, &x, err);
    if (rc == 0)
        rc = put_frame(w, p, x, blocks, n_blocks, end, compressor_raw_bytes(g->out), id, err);
    free(x);
    return rc;
}

/* Writes the file, on the contents of g->base if there is one. */
static int write_on(struct brg_image_writer *w, struct gather *g, char id[BRG_ID_TEXT],
                    struct brg_error *err)
{
    struct places p = {0};
    size_t n_sources, n_contents;
    gather_measure(w, &n_sources, &g->total);
    n_contents = n_sources;
    if (g->base) {
        n_contents += g->base->index->n_contents;
        g->total += g->base->header->raw_bytes;
    }
    int rc = plan_places(w, n_contents, g->total, &p, err);
    if (rc == 0)
        rc = compressor_create(w->fd, w->path, p.data_off, &w->options, p.max_blocks, &g->out, err);
    if (rc == 0)
        rc = write_all(w, g, &p, n_sources, id, err);
    compressor_destroy(g->out);
    free(g->contents);
    return rc;
}

int brg_image_writer_commit(struct brg_image_writer *w, brg_image_progress *progress,
                            brg_image_lost *lost, void *user, char id[33], struct brg_error *err)
{
    struct brg_index *trial = NULL;
    char text[BRG_ID_TEXT];
    if (w->fd < 0)
        return brg_error_set(err, -EINVAL, "%s was committed before", w->path);
    int rc = brg_writer_sort(w, err);
    if (rc == 0) /* finds entries that contradict each other before hours of reading */
        rc = brg_writer_build_index(w, NULL, 0, &trial, err);
    free(trial);
    if (rc != 0)
        return rc;
    const struct gather all = {.w = w, .progress = progress, .lost = lost, .user = user};
    struct gather g = all;
    g.base = base_plan(w);
    rc = write_on(w, &g, text, err);
    if (g.base_failed) {
        base_forget(w);
        g = all;
        if (ftruncate(w->fd, 0) != 0)
            return brg_error_system(err, -errno, "cannot write %s", w->path);
        rc = write_on(w, &g, text, err);
    }
    if (rc == 0)
        rc = publish(w, err);
    if (rc == 0)
        memcpy(id, text, sizeof text);
    return rc;
}
