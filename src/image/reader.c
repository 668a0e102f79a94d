/* Reading an image file that may be anything: the head once, checked; blocks one by one. */
#include "image/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/io.h"

static int read_exactly(int fd, const char *path, void *to, size_t n, uint64_t offset,
                        struct brg_error *err)
{
    ssize_t got = brg_io_pread(fd, to, n, offset);
    if (got < 0)
        return brg_error_system(err, (int)got, "cannot read %s at offset %" PRIu64, path, offset);
    if ((size_t)got < n)
        return brg_error_set(err, -EBADMSG,
                             "%s is truncated: it ends at offset %" PRIu64
                             ", inside what should be read there; copy it again, or make the image "
                             "again",
                             path, offset + (uint64_t)got);
    return 0;
}

/* Reads header, then the whole head, checking each before it is trusted for the next step. */
static int read_head(int fd, const char *path, void **head, struct brg_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return brg_error_system(err, -errno, "cannot read %s", path);
    if (!S_ISREG(st.st_mode))
        return brg_error_set(err, -EBADMSG,
                             "%s is not a Brigade image: it is no file; give the "
                             "path of an image",
                             path);
    if (st.st_size < (off_t)BRG_PAGE)
        return brg_error_set(err, -EBADMSG,
                             "%s is not a Brigade image, or is truncated: it has "
                             "only %lld bytes; make the image again",
                             path, (long long)st.st_size);
    _Alignas(8) char page[BRG_PAGE];
    const struct brg_image_header *h = (const struct brg_image_header *)page;
    struct brg_image_trailer t;
    int rc = read_exactly(fd, path, page, sizeof page, 0, err);
    if (rc == 0)
        rc = brg_header_check(page, (uint64_t)st.st_size, path, err);
    if (rc == 0)
        rc = read_exactly(fd, path, &t, sizeof t, h->trailer_off, err);
    if (rc == 0)
        rc = brg_trailer_check(h, &t, path, err);
    if (rc != 0)
        return rc;
    char *bytes = malloc(h->data_off);
    if (!bytes)
        return brg_error_set(err, -ENOMEM, "no memory for the index of %s: %" PRIu64 " bytes", path,
                             h->data_off);
    memcpy(bytes, page, BRG_PAGE); /* the page that was checked, should the file change */
    rc = read_exactly(fd, path, bytes + BRG_PAGE, h->data_off - BRG_PAGE, BRG_PAGE, err);
    if (rc == 0)
        rc = brg_head_check(bytes, path, err);
    if (rc != 0) {
        free(bytes);
        return rc;
    }
    *head = bytes;
    return 0;
}

int brg_image_open(const char *path, struct brg_image **image, struct brg_error *err)
{
    /* O_NONBLOCK: a pipe given by mistake is refused, not waited for */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return brg_error_system(err, -errno, "cannot open the image %s", path);
    void *head = NULL;
    int rc = read_head(fd, path, &head, err);
    struct brg_image *i = rc == 0 ? calloc(1, sizeof *i) : NULL;
    char *name = i ? strdup(path) : NULL;
    if (!name) {
        close(fd);
        free(head);
        free(i);
        return rc != 0 ? rc : brg_error_set(err, -ENOMEM, "no memory to open the image %s", path);
    }
    i->fd = fd;
    i->path = name;
    i->head = head;
    i->header = head;
    i->index = brg_head_index(head);
    i->blocks = brg_head_blocks(head);
    *image = i;
    return 0;
}

void brg_image_close(struct brg_image *i)
{
    if (!i)
        return;
    close(i->fd);
    free(i->path);
    free(i->head);
    free(i);
}

void brg_image_get_info(const struct brg_image *i, struct brg_image_info *info)
{
    const struct brg_image_header *h = i->header;
    memset(info, 0, sizeof *info);
    brg_id_text(h->id, info->id);
    info->version = h->version;
    info->block_bytes = h->block_bytes;
    info->n_blocks = h->n_blocks;
    info->total_bytes = h->total_bytes;
    info->index_bytes = h->index_bytes;
    info->raw_bytes = h->raw_bytes;
    info->data_off = h->data_off;
    info->n_entries = i->index->n_entries;
    info->n_contents = i->index->n_contents;
    info->n_answers = i->index->n_answers;
    info->n_roots = i->index->n_roots;
}

const struct brg_index *brg_image_index(const struct brg_image *i)
{
    return i->index;
}

int brg_image_resolve(const struct brg_image *i, const char *path, int follow, uint32_t *entry,
                      int *err_no, char *out, size_t out_size)
{
    return brg_index_resolve(i->index, path, follow, entry, err_no, out, out_size);
}

uint64_t brg_image_search_context(const char *exe, const char *ld_library_path)
{
    return brg_search_context(exe, ld_library_path);
}

int brg_image_read_packed(const struct brg_image *i, uint32_t block, void *packed,
                          struct brg_error *err)
{
    const struct brg_block *b = &i->blocks[block];
    int rc = read_exactly(i->fd, i->path, packed, b->bytes, b->off, err);
    return rc == 0 ? brg_block_check(b, block, packed, i->path, err) : rc;
}

int brg_image_read_block(const struct brg_image *i, uint32_t block, void *raw, size_t *raw_bytes,
                         struct brg_error *err)
{
    if (block >= i->header->n_blocks)
        return brg_error_set(err, -EINVAL, "%s has no block %u: it has %u", i->path, block,
                             i->header->n_blocks);
    const struct brg_block *b = &i->blocks[block];
    void *packed = malloc(b->bytes);
    if (!packed)
        return brg_error_set(err, -ENOMEM, "no memory to read block %u of %s", block, i->path);
    int rc = read_exactly(i->fd, i->path, packed, b->bytes, b->off, err);
    if (rc == 0)
        rc = brg_block_decode(b, block, packed, raw, NULL, i->path, err);
    free(packed);
    if (rc == 0)
        *raw_bytes = b->raw_bytes;
    return rc;
}

int brg_image_read_content(const struct brg_image *i, uint32_t content, uint64_t offset, void *buf,
                           size_t n, struct brg_error *err)
{
    if (content >= i->index->n_contents)
        return brg_error_set(err, -EINVAL, "%s has no content %u", i->path, content);
    const struct brg_content *c = &brg_contents(i->index)[content];
    if (offset > c->size || n > c->size - offset)
        return brg_error_set(err, -EINVAL, "content %u of %s has only %" PRIu64 " bytes", content,
                             i->path, c->size);
    size_t block_bytes = i->header->block_bytes;
    char *raw = n ? malloc(block_bytes) : NULL;
    if (n && !raw)
        return brg_error_set(err, -ENOMEM, "no memory to read a block of %s", i->path);
    uint64_t at = c->raw_off + offset;
    int rc = 0;
    for (size_t done = 0; rc == 0 && done < n;) {
        size_t skip = at % block_bytes, got = 0;
        rc = brg_image_read_block(i, (uint32_t)(at / block_bytes), raw, &got, err);
        if (rc != 0)
            break;
        size_t part = got - skip < n - done ? got - skip : n - done;
        memcpy((char *)buf + done, raw + skip, part);
        done += part;
        at += part;
    }
    free(raw);
    return rc;
}
