/* Checking what was read of an image file, in memory. */
#include "image/format.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <xxhash.h>

#include "base/error.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "images are little-endian, and are mapped as they are"
#endif
_Static_assert(sizeof(struct brg_index) == 184, "documented layout");
_Static_assert(sizeof(struct brg_entry) == 144, "documented layout");
_Static_assert(sizeof(struct brg_content) == 32, "documented layout");
_Static_assert(sizeof(struct brg_answer) == 40, "documented layout");
_Static_assert(sizeof(struct brg_image_header) == 152, "documented layout");
_Static_assert(sizeof(struct brg_block) == 24, "documented layout");
_Static_assert(sizeof(struct brg_image_trailer) == 32, "documented layout");

#define MAKE_AGAIN "make the image again with `brigade image create` or a new trial"

void brg_id_text(const uint64_t id[2], char text[BRG_ID_TEXT])
{
    snprintf(text, BRG_ID_TEXT, "%016" PRIx64 "%016" PRIx64, id[1], id[0]);
}

/* XXH3-64 of n bytes of which the 8 at `hole` are taken as 0. */
static uint64_t checksum_without(const void *bytes, size_t n, size_t hole)
{
    static const uint64_t zero;
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, bytes, hole);
    XXH3_64bits_update(&state, &zero, sizeof zero);
    XXH3_64bits_update(&state, (const char *)bytes + hole + 8, n - hole - 8);
    return XXH3_64bits_digest(&state);
}

uint64_t brg_index_checksum(const struct brg_index *x)
{
    return checksum_without(x, x->bytes, offsetof(struct brg_index, checksum));
}

uint64_t brg_header_checksum(const void *page)
{
    return checksum_without(page, BRG_PAGE, offsetof(struct brg_image_header, checksum));
}

static int ranges_fit(const struct brg_image_header *h)
{
    uint64_t blocks = h->raw_bytes / h->block_bytes + (h->raw_bytes % h->block_bytes != 0);
    return h->index_off == BRG_PAGE && h->index_bytes >= sizeof(struct brg_index) &&
           h->table_off % 8 == 0 && h->data_off % 8 == 0 && h->table_off >= h->index_off &&
           h->index_bytes <= h->table_off - h->index_off && h->data_off >= h->table_off &&
           blocks == h->n_blocks &&
           blocks * sizeof(struct brg_block) <= h->data_off - h->table_off &&
           h->trailer_off >= h->data_off && h->total_bytes >= h->trailer_off &&
           h->total_bytes - h->trailer_off == sizeof(struct brg_image_trailer);
}

int brg_header_check(const void *page, uint64_t file_bytes, const char *where,
                     struct brg_error *err)
{
    const struct brg_image_header *h = page;
    if (h->magic != BRG_IMAGE_MAGIC)
        return brg_error_set(err, -EBADMSG,
                             "%s is not a Brigade image (at offset 0): "
                             "give the path of an image, or " MAKE_AGAIN,
                             where);
    if (h->version != BRG_IMAGE_VERSION)
        return brg_error_set(err, -EPROTONOSUPPORT,
                             "%s has image format %u, this program reads "
                             "format %u: use the Brigade that made it, or " MAKE_AGAIN,
                             where, h->version, BRG_IMAGE_VERSION);
    if (h->header_bytes != sizeof *h || h->checksum != brg_header_checksum(page))
        return brg_error_set(err, -EBADMSG,
                             "%s is damaged: its header at offset 0 does not match "
                             "its checksum; " MAKE_AGAIN,
                             where);
    if (h->codec != BRG_ZSTD)
        return brg_error_set(err, -EPROTONOSUPPORT,
                             "%s is compressed with method %u, which this "
                             "program does not know; " MAKE_AGAIN,
                             where, h->codec);
    if (h->block_bytes < BRG_BLOCK_BYTES_MIN || h->block_bytes > BRG_BLOCK_BYTES_MAX ||
        !ranges_fit(h))
        return brg_error_set(err, -EBADMSG,
                             "%s is damaged: the offsets in its header at offset 0 "
                             "contradict each other; " MAKE_AGAIN,
                             where);
    if (file_bytes && file_bytes < h->total_bytes)
        return brg_error_set(err, -EBADMSG,
                             "%s is truncated: it has %" PRIu64 " of %" PRIu64
                             " bytes; copy it again, or " MAKE_AGAIN,
                             where, file_bytes, h->total_bytes);
    if (file_bytes > h->total_bytes)
        return brg_error_set(err, -EBADMSG,
                             "%s is damaged: %" PRIu64 " bytes follow its end at "
                             "offset %" PRIu64 "; copy it again, or " MAKE_AGAIN,
                             where, file_bytes - h->total_bytes, h->total_bytes);
    return 0;
}

static int table_check(const void *head, const char *where, struct brg_error *err)
{
    const struct brg_image_header *h = head;
    const struct brg_block *blocks = brg_head_blocks(head);
    if (XXH3_64bits(blocks, h->n_blocks * sizeof *blocks) != h->table_checksum)
        return brg_error_set(err, -EBADMSG,
                             "%s is damaged: its block table at offset %" PRIu64
                             " does not match its checksum; " MAKE_AGAIN,
                             where, h->table_off);
    uint64_t at = h->data_off, raw = h->raw_bytes;
    for (uint32_t i = 0; i < h->n_blocks; i++) {
        uint64_t expect = raw < h->block_bytes ? raw : h->block_bytes;
        if (blocks[i].off != at || blocks[i].raw_bytes != expect || blocks[i].bytes == 0 ||
            blocks[i].bytes > expect || blocks[i].bytes > h->trailer_off - at)
            return brg_error_set(err, -EBADMSG,
                                 "%s is damaged: block %u of the table at offset %" PRIu64
                                 " does not follow the block before it; " MAKE_AGAIN,
                                 where, i, h->table_off);
        at += blocks[i].bytes;
        raw -= expect;
    }
    if (at != h->trailer_off)
        return brg_error_set(err, -EBADMSG,
                             "%s is damaged: its blocks end at offset %" PRIu64
                             ", not where its trailer starts; " MAKE_AGAIN,
                             where, at);
    return 0;
}

int brg_head_check(const void *head, const char *where, struct brg_error *err)
{
    const struct brg_image_header *h = head;
    const struct brg_index *x = brg_head_index(head);
    if (x->bytes != h->index_bytes || x->checksum != brg_index_checksum(x))
        return brg_error_set(err, -EBADMSG,
                             "%s is damaged: its index at offset %" PRIu64
                             " does not match its checksum; " MAKE_AGAIN,
                             where, h->index_off);
    XXH128_hash_t id = XXH3_128bits(x, h->index_bytes);
    if (id.low64 != h->id[0] || id.high64 != h->id[1])
        return brg_error_set(err, -EBADMSG,
                             "%s is damaged: its index at offset %" PRIu64
                             " is of another image; " MAKE_AGAIN,
                             where, h->index_off);
    const char *why = "";
    if (brg_index_check(x, h->index_bytes, &why) != 0)
        return brg_error_set(err, -EBADMSG,
                             "%s has an index (at offset %" PRIu64
                             ") that cannot be used: %s; " MAKE_AGAIN,
                             where, h->index_off, why);
    uint64_t raw = 0;
    if (x->n_contents) {
        const struct brg_content *last = &brg_contents(x)[x->n_contents - 1];
        raw = last->raw_off + last->size;
    }
    if (raw != h->raw_bytes)
        return brg_error_set(err, -EBADMSG,
                             "%s is damaged: the contents of its index at offset %" PRIu64
                             " and its header have different sizes; " MAKE_AGAIN,
                             where, h->index_off);
    return table_check(head, where, err);
}

void brg_head_seal(void *head)
{
    struct brg_image_header *h = head;
    struct brg_index *x = (struct brg_index *)((char *)head + h->index_off);
    x->checksum = brg_index_checksum(x);
    XXH128_hash_t id = XXH3_128bits(x, h->index_bytes);
    h->id[0] = id.low64;
    h->id[1] = id.high64;
    h->checksum = brg_header_checksum(head);
}

int brg_trailer_check(const struct brg_image_header *h, const struct brg_image_trailer *t,
                      const char *where, struct brg_error *err)
{
    if (t->magic == BRG_TRAILER_MAGIC && t->id[0] == h->id[0] && t->id[1] == h->id[1] &&
        t->total_bytes == h->total_bytes)
        return 0;
    return brg_error_set(err, -EBADMSG,
                         "%s is damaged: its trailer at offset %" PRIu64
                         " does not match its header; copy it again, or " MAKE_AGAIN,
                         where, h->trailer_off);
}
