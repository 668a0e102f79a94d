/* The image file: where what lies, and the pure functions that read it from memory.
 *
 *   0        +----------------------------------------------+
 *            | header (one page)                            |
 *   4096     +----------------------------------------------+ index_off
 *            | index (index.h), then zeros up to a page     |
 *            +----------------------------------------------+ table_off
 *            | struct brg_block[n_blocks], zeros to a page  |
 *            +----------------------------------------------+ data_off = bytes of the head
 *            | block 0 | block 1 | ... back to back         |
 *            +----------------------------------------------+ trailer_off
 *            | trailer (32 bytes)                           |
 *            +----------------------------------------------+ total_bytes
 *
 * Header, index and table together are the head: [0, data_off) is one read, and is all that is
 * needed to know what each block holds. All contents in order form one raw stream, cut every
 * block_bytes; each piece is compressed by itself. Numbers are little-endian.
 *
 * Nothing here opens a file or allocates: the staging processes call these functions on what
 * arrived in messages. `where` names the source of the bytes in error texts.
 */
#ifndef BRG_IMAGE_FORMAT_H
#define BRG_IMAGE_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#include "brigade/error.h"
#include "image/index.h"

#define BRG_IMAGE_MAGIC UINT64_C(0x0031474d49475242)   /* "BRGIMG1\0" */
#define BRG_TRAILER_MAGIC UINT64_C(0x00444e4547524221) /* "!BRGEND\0" */
#define BRG_IMAGE_VERSION 1u
#define BRG_PAGE 4096u
#define BRG_BLOCK_BYTES_MIN 4096u
#define BRG_BLOCK_BYTES_MAX (64u << 20)
#define BRG_BLOCK_BYTES_DEFAULT (1u << 20)

enum brg_codec {
    BRG_ZSTD = 1, /* a block whose two sizes are equal is stored as it is */
};

struct brg_image_header { /* at 0; the rest of the page is zero */
    uint64_t magic;
    uint32_t version;
    uint32_t header_bytes; /* sizeof (struct brg_image_header) */
    uint64_t id[2];        /* XXH3-128 of the index: low, high */
    uint64_t total_bytes;
    uint64_t index_off, index_bytes;
    uint64_t table_off;
    uint64_t data_off;
    uint64_t trailer_off;
    uint64_t raw_bytes; /* of all contents */
    uint32_t block_bytes, n_blocks;
    uint32_t codec, reserved0;
    uint64_t table_checksum; /* XXH3-64 of the block table */
    uint64_t reserved[4];
    uint64_t checksum; /* XXH3-64 of the header page, this field taken as 0 */
};

struct brg_block {      /* the raw bytes are [i * block_bytes, i * block_bytes + raw_bytes) */
    uint64_t off;       /* in the file */
    uint32_t bytes;     /* in the file */
    uint32_t raw_bytes; /* block_bytes, less for the last block */
    uint64_t checksum;  /* XXH3-64 of the bytes in the file */
};

struct brg_image_trailer {
    uint64_t magic;
    uint64_t id[2];
    uint64_t total_bytes;
};

#define BRG_ID_TEXT 33 /* 32 hex digits and a NUL */

/* The image id as text, high half first. */
void brg_id_text(const uint64_t id[2], char text[BRG_ID_TEXT]);

/* XXH3-64 of an index or a header page, its own checksum field taken as 0. */
uint64_t brg_index_checksum(const struct brg_index *x);
uint64_t brg_header_checksum(const void *page);

/* Checks the header page: magic, version, checksum, and that all offsets fit each other. `page`
 * holds BRG_PAGE bytes, 8-aligned. file_bytes is the size of the file, or 0 if it is not known.
 * After it has passed, every range of the header lies in [0, total_bytes). Returns 0, -EBADMSG
 * (damaged, truncated, no image at all) or -EPROTONOSUPPORT (made by a newer version). */
int brg_header_check(const void *page, uint64_t file_bytes, const char *where,
                     struct brg_error *err);

/* Checks the head that follows a good header: the index (checksum, image id, structure) and the
 * block table (checksum, order, sizes). `head` holds header.data_off bytes, 8-aligned. After it
 * has passed, index and table may be used without further care. Returns 0 or -EBADMSG. */
int brg_head_check(const void *head, const char *where, struct brg_error *err);

/* After a change to the index of a head in memory: its checksums, and the id, which becomes that of
 * another image. */
void brg_head_seal(void *head);

int brg_trailer_check(const struct brg_image_header *h, const struct brg_image_trailer *t,
                      const char *where, struct brg_error *err);

static inline const struct brg_index *brg_head_index(const void *head)
{
    return (const struct brg_index *)((const char *)head +
                                      ((const struct brg_image_header *)head)->index_off);
}
static inline const struct brg_block *brg_head_blocks(const void *head)
{
    return (const struct brg_block *)((const char *)head +
                                      ((const struct brg_image_header *)head)->table_off);
}

/* Verifies one block. `bytes` must be b->bytes long; `number` and `where` are for the error text.
 * Returns 0 or -EBADMSG. */
int brg_block_check(const struct brg_block *b, uint32_t number, const void *bytes,
                    const char *where, struct brg_error *err);

/* The same, and decompresses it: `raw` takes b->raw_bytes; `zstd` is a ZSTD_DCtx to use again, or
 * NULL. Returns 0, -EBADMSG or -ENOMEM. */
int brg_block_decode(const struct brg_block *b, uint32_t number, const void *bytes, void *raw,
                     void *zstd, const char *where, struct brg_error *err);

/* The contents that have bytes in [raw_off, raw_end) of the raw stream are those from *first to
 * before *end. The empty content, if there is one, may or may not lie among them. */
void brg_contents_in(const struct brg_index *x, uint64_t raw_off, uint64_t raw_end, uint32_t *first,
                     uint32_t *end);

/* The entries that share a content: `entries[first[c]] .. entries[first[c + 1] - 1]` for content
 * c. The caller gives first[n_contents + 1] and entries[n_entries]. */
void brg_content_entries(const struct brg_index *x, uint32_t *first, uint32_t *entries);

#endif
