/* See parts_index.h: writing an index. Of the table, 8 bytes for 64 KiB stay in memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "store/parts_index.h"
#include "store/store_io.h"

void parts_build_start(struct parts_build *b, int fd)
{
    memset(b, 0, sizeof *b);
    b->fd = fd;
}

void parts_build_free(struct parts_build *b)
{
    free(b->table);
    b->table = NULL;
}

static int write_page(struct parts_build *b)
{
    if (b->n_table == b->room) {
        size_t room = b->room ? 2 * b->room : 64;
        uint64_t *table = realloc(b->table, 8 * room);
        if (!table)
            return -ENOMEM;
        b->table = table;
        b->room = room;
    }
    uint64_t at = PARTS_HEAD + b->n_table * PARTS_PAGE;
    b->table[b->n_table++] = XXH3_64bits(b->page, b->n);
    int rc = store_io_write(b->fd, b->page, b->n, at, NULL);
    b->n = 0;
    return rc;
}

int parts_build_put(struct parts_build *b, const void *bytes, size_t n)
{
    int rc = 0;
    b->body_bytes += n;
    while (!rc && n) {
        size_t some = n < PARTS_PAGE - b->n ? n : PARTS_PAGE - b->n;
        memcpy(b->page + b->n, bytes, some);
        b->n += some;
        bytes = (const char *)bytes + some;
        n -= some;
        if (b->n == PARTS_PAGE)
            rc = write_page(b);
    }
    return rc;
}

static int put_last(struct parts_build *b)
{
    if (!b->last.bytes)
        return 0;
    int rc = parts_build_put(b, &b->last, sizeof b->last);
    b->n_extents++;
    b->last.bytes = 0;
    return rc;
}

int parts_build_extent(struct parts_build *b, const struct parts_extent *e)
{
    struct parts_extent *last = &b->last;
    if (!e) /* no more come */
        return put_last(b);
    if (last->bytes && last->part == e->part && last->offset + last->bytes == e->offset &&
        last->at + last->bytes == e->at) {
        last->bytes += e->bytes;
        return 0;
    }
    int rc = put_last(b);
    *last = *e;
    return rc;
}

int parts_build_end(struct parts_build *b, struct parts_head *head)
{
    int rc = b->n ? write_page(b) : 0;
    uint64_t table_at = PARTS_HEAD + b->body_bytes;
    if (!rc && b->n_table)
        rc = store_io_write(b->fd, b->table, 8 * b->n_table, table_at, NULL);
    head->magic = PARTS_MAGIC;
    head->version = PARTS_VERSION;
    head->n_extents = b->n_extents;
    head->body_bytes = b->body_bytes;
    head->total_bytes = table_at + 8 * b->n_table;
    head->table_checksum = XXH3_64bits(b->table, 8 * b->n_table);
    head->checksum = parts_head_checksum(head);
    return rc ? rc : store_io_write(b->fd, head, sizeof *head, 0, NULL);
}
