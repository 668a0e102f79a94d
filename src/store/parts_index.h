/* The index of a file of parts, as it lies on disk (docs/format.md), and one that is being read.
 *
 *     0      head, one page
 *     4096   body: extents, then parts, then checksums of the parts' blocks
 *            table: XXH3-64 of each PARTS_PAGE bytes of the body
 *
 * Extents are sorted by offset and do not overlap, so that a look-up is a binary search that reads
 * a page at a time: no memory grows with the file. */
#ifndef BRG_IO_PARTS_INDEX_H
#define BRG_IO_PARTS_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "brigade/error.h"

#define PARTS_MAGIC 0x3154524150475242ull /* "BRGPART1", little-endian */
#define PARTS_VERSION 1u
#define PARTS_HEAD 4096u
#define PARTS_PAGE 65536u
#define PARTS_FOLDER 256

struct parts_head {
    uint64_t magic;
    uint32_t version, n_parts;
    uint64_t id;
    uint64_t size;        /* of the file that the parts make */
    uint64_t block_bytes; /* of a part, for checksums */
    uint64_t n_extents, n_sums;
    uint64_t body_bytes;
    uint64_t total_bytes;        /* of the index */
    uint64_t table_checksum;     /* XXH3-64 of the table */
    char folder[PARTS_FOLDER];   /* beside the index; a part's name in it is its number */
    uint64_t checksum;           /* XXH3-64 of the page, this field taken as 0 */
    char zero[PARTS_HEAD - 344]; /* to a page */
};

struct parts_extent {
    uint64_t offset, bytes; /* of the file */
    uint64_t at;            /* in the part */
    uint32_t part;          /* place in the table of parts */
    uint32_t zero;
};

struct parts_part {
    uint64_t number, bytes;
    uint64_t first_sum, n_sums; /* one XXH3-64 a block; 1 stands for 0 */
};

struct parts_index {
    int fd;
    struct parts_head head;
    uint64_t page; /* number of the page in `bytes`, or UINT64_MAX */
    char bytes[PARTS_PAGE];
};

uint64_t parts_head_checksum(const struct parts_head *head);

/* Reads the head. 0; -ENOENT; -EMEDIUMTYPE: something else than an index; -EBADMSG: damaged, with
 * *err (may be NULL); -errno. */
int parts_head_read(const char *path, struct parts_head *head, struct brg_error *err);
int parts_head_of(int fd, const char *path, struct parts_head *head, struct brg_error *err);

/* Opens an index; head and table are checked, pages when they are used. It returns what
 * parts_head_read does; close what succeeded. */
int parts_index_open(struct parts_index *index, const char *path, struct brg_error *err);
void parts_index_close(struct parts_index *index);

/* Each 0, -EBADMSG (a page is damaged), or -errno. */
int parts_index_extent(struct parts_index *index, uint64_t i, struct parts_extent *extent);
int parts_index_part(struct parts_index *index, uint64_t i, struct parts_part *part);
int parts_index_sum(struct parts_index *index, uint64_t i, uint64_t *sum);

/* *i becomes the first extent that ends after `offset`, or n_extents. */
int parts_index_find(struct parts_index *index, uint64_t offset, uint64_t *i);

/* Building one: extents in order, then parts, then sums, then the head. */
struct parts_build {
    int fd;
    uint64_t body_bytes;
    size_t n; /* bytes in `page` */
    uint64_t *table;
    size_t n_table, room;
    struct parts_extent last; /* not put yet; bytes 0: none */
    uint64_t n_extents;
    char page[PARTS_PAGE];
};

/* Each 0 or -errno. fd is of an empty file. An extent that goes on where the last one ended, in
 * file and part, becomes one with it; NULL: no more extents come. */
void parts_build_start(struct parts_build *build, int fd);
int parts_build_extent(struct parts_build *build, const struct parts_extent *extent);
int parts_build_put(struct parts_build *build, const void *bytes, size_t n);
/* Fills in what it knows of the head and writes it. */
int parts_build_end(struct parts_build *build, struct parts_head *head);
void parts_build_free(struct parts_build *build);

#endif
