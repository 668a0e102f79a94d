/* The bytes that make a file a container: header and index (docs/format-io.md). Pure.
 *
 *     0        header, 64 bytes: where the index is, and its checksum
 *     ...      arrays, wherever the index says
 *     index    records {u32 tag, u32 bytes, payload, zeros to a multiple of 8}
 *
 * All numbers little-endian. What is unpacked may be damaged or hostile: nothing is believed that
 * was not checked. */
#ifndef BRG_IO_ARRAY_INDEX_H
#define BRG_IO_ARRAY_INDEX_H

#include "io/array_table.h"

#define ARRAY_HEADER_BYTES 64u
#define ARRAY_INDEX_MOST (256u << 20) /* bytes of an index */

struct array_header {
    uint32_t order;         /* of the arrays' bytes: 1 little-endian, 2 big-endian */
    uint64_t offset, bytes; /* of the index */
    uint32_t checksum;      /* CRC-32 of the index */
};

uint32_t array_checksum(const void *data, size_t bytes); /* CRC-32, as zlib's */

uint64_t array_index_bytes(const struct array_table *table);
void array_index_pack(const struct array_table *table, char *buf);

/* header->checksum comes from `index`; order is this machine's. */
void array_header_pack(char *buf, uint64_t offset, const void *index, uint64_t bytes);

/* `n` bytes from the beginning of a file of file_bytes. 1: a header; 0: this is no file of arrays;
 * -EBADMSG: a damaged one; -EOPNOTSUPP: of a later version. */
int array_header_unpack(const char *buf, size_t n, uint64_t file_bytes, struct array_header *header,
                        struct brg_error *err);

/* Fills an empty table: -EBADMSG, -ENOMEM. */
int array_index_unpack(struct array_table *table, const char *buf,
                       const struct array_header *header, struct brg_error *err);

#endif
