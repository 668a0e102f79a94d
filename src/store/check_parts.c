/* See check.h: a file of parts. Its index holds the checksums of its parts, and its own. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "store/check_inside.h"
#include "store/store_io.h"

static int odd(struct brg_error *err, const char *path, const char *what, uint64_t i)
{
    brg_error_set(err, -EBADMSG, "%s, an index of parts, is damaged: %s %llu", path, what,
                  (unsigned long long)i);
    if (err)
        snprintf(err->path, sizeof err->path, "%s", path);
    return -EBADMSG;
}

/* Every page of the index, and whether it makes sense. */
static int check_index(struct parts_index *x, const char *path, uint64_t *bytes,
                       struct brg_error *err)
{
    uint64_t end = 0, sum, sums = 0;
    struct parts_extent e;
    struct parts_part p = {0};
    for (uint64_t i = 0; i < x->head.n_extents; i++) {
        if (parts_index_extent(x, i, &e) || e.offset < end || !e.bytes ||
            e.part >= x->head.n_parts || e.offset + e.bytes > x->head.size)
            return odd(err, path, "extent", i);
        end = e.offset + e.bytes;
    }
    for (uint64_t i = 0; i < x->head.n_parts; i++) {
        if (parts_index_part(x, i, &p) || p.first_sum != sums ||
            p.n_sums != (p.bytes + x->head.block_bytes - 1) / x->head.block_bytes)
            return odd(err, path, "part", i);
        sums += p.n_sums;
        *bytes += p.bytes;
    }
    for (uint64_t i = 0; i < x->head.n_sums; i++)
        if (parts_index_sum(x, i, &sum))
            return odd(err, path, "checksum", i);
    return sums == x->head.n_sums ? 0 : odd(err, path, "the number of checksums is", sums);
}

static void add_bad(struct check_report *r, const char *path, uint64_t offset, uint64_t bytes,
                    const char *what)
{
    if (r->n_bad < CHECK_LISTED) {
        struct check_bad *bad = &r->bad[r->n_bad];
        *bad = (struct check_bad){.offset = offset, .bytes = bytes};
        snprintf(bad->path, sizeof bad->path, "%.1023s", path);
        snprintf(bad->what, sizeof bad->what, "%s", what);
    }
    r->n_bad++;
}

static int check_part(struct parts_reader *reader, uint32_t i, uint64_t total,
                      check_progress *progress, void *context, struct check_report *r,
                      struct brg_error *err)
{
    char name[PARTS_NAME];
    struct stat st = {0};
    int rc = parts_reader_use(reader, i, err);
    const struct parts_part *part = &reader->part;
    parts_name(name, reader->folder, part->number, "");
    if (rc == -ENOENT) {
        add_bad(r, name, 0, part->bytes, "it is not there");
        return 0;
    }
    if (!rc && fstat(reader->fd, &st))
        rc = store_failed(err, -errno, name, -1, "look at");
    if (!rc && (uint64_t)st.st_size != part->bytes)
        add_bad(r, name, 0, part->bytes, "it has not the size that it had");
    for (uint64_t b = 0; !rc && b < part->n_sums; b++) {
        uint64_t at = b * r->block_bytes, left = part->bytes - at;
        uint64_t n = left < r->block_bytes ? left : r->block_bytes;
        rc = parts_check_block(reader, b, err);
        if (rc == -EBADMSG) {
            add_bad(r, name, at, n, "its checksum differs");
            rc = 0;
        }
        r->checked += n;
        if (progress)
            progress(context, r->checked, total);
    }
    return rc;
}

int check_parts(const char *path, check_progress *progress, void *context, struct check_report *r,
                struct brg_error *err)
{
    struct parts_reader *reader = malloc(sizeof *reader);
    uint64_t total = 0;
    if (!reader)
        return brg_error_set(err, -ENOMEM, "no memory to verify %s", path);
    int rc = parts_reader_open(reader, path, err);
    if (rc == 0) {
        const struct parts_head *head = &reader->index.head;
        rc = check_index(&reader->index, path, &total, err);
        r->size = head->size;
        r->parts = (int)head->n_parts;
        r->block_bytes = head->block_bytes;
        r->n_blocks = head->n_sums;
        for (uint32_t i = 0; !rc && i < head->n_parts; i++)
            rc = check_part(reader, i, total, progress, context, r, err);
        parts_reader_close(reader);
    }
    free(reader);
    return rc;
}
