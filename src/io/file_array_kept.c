/* Small arrays are kept, and many of them written in one call.
 *
 * Which arrays are kept depends on their whole size alone, so every rank keeps the same ones. The
 * bound is a fraction of a segment; blocks are packed, and become pieces when they are written. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/file_array.h"

enum {
    KEPT_BYTES = 256 << 10,
    KEPT_PARTS = 16, /* an array is small if so many would be kept */
    KEPT_BLOCKS = 1024
};

static uint64_t kept_most(const brg_file *f)
{
    uint64_t most = f->hints.segment_bytes / 4;
    return most < KEPT_BYTES ? most : KEPT_BYTES;
}

int kept_is_for(const brg_file *f, uint64_t bytes)
{
    return bytes > 0 && bytes <= kept_most(f) / KEPT_PARTS;
}

int kept_full(const brg_file *f)
{
    const struct file_arrays *a = f->arrays;
    return a->kept_whole > kept_most(f) || a->table.n - a->agreed >= KEPT_BLOCKS;
}

void kept_destroy(struct file_arrays *a)
{
    free(a->kept);
    free(a->bytes);
}

static int make_room(struct file_arrays *a, size_t bytes)
{
    if (a->n_kept == a->kept_room) {
        size_t room = a->kept_room ? 2 * a->kept_room : 16;
        struct kept_block *kept = reallocarray(a->kept, room, sizeof *kept);
        if (!kept)
            return -ENOMEM;
        a->kept = kept;
        a->kept_room = room;
    }
    if (a->n_bytes + bytes > a->bytes_room) {
        size_t room = 2 * (a->n_bytes + bytes);
        char *moved = realloc(a->bytes, room);
        if (!moved)
            return -ENOMEM;
        a->bytes = moved;
        a->bytes_room = room;
    }
    return 0;
}

int kept_add(brg_file *f, size_t array, const uint64_t *start, const uint64_t *count,
             const int64_t *strides, const void *buf, struct brg_error *err)
{
    struct file_arrays *a = f->arrays;
    struct io_request request;
    struct io_cursor cursor;
    struct io_part part;
    int rc = array_request(&request, &a->table.arrays[array], start, count, strides, buf, err);
    if (rc)
        return rc;
    a->kept_whole += a->table.arrays[array].bytes;
    if (request.bytes == 0)
        return 0;
    if (make_room(a, request.bytes))
        rc = brg_error_set(err, -ENOMEM, "no memory for array %.200s",
                           a->table.arrays[array].is.name);
    else {
        struct kept_block *block = &a->kept[a->n_kept++];
        size_t n = (size_t)a->table.arrays[array].is.ndims;
        *block = (struct kept_block){.array = array, .at = a->n_bytes};
        if (n) {
            memcpy(block->start, start, n * sizeof *start);
            memcpy(block->count, count, n * sizeof *count);
        }
        cursor_seek(&cursor, &request, 0); /* the order of the file is C order */
        while (cursor_next(&cursor, UINT64_MAX, &part)) {
            memcpy(a->bytes + a->n_bytes, part.memory, part.bytes);
            a->n_bytes += part.bytes;
        }
    }
    request_destroy(&request);
    return rc;
}

/* A list of pieces that doubles. */
struct piece_list {
    brg_piece *list;
    size_t n, room;
};

static int add_piece(struct piece_list *pieces, uint64_t offset, uint64_t bytes)
{
    if (pieces->n == pieces->room) {
        size_t room = pieces->room ? 2 * pieces->room : 64;
        brg_piece *list = reallocarray(pieces->list, room, sizeof *list);
        if (!list)
            return -ENOMEM;
        pieces->list = list;
        pieces->room = room;
    }
    pieces->list[pieces->n++] = (brg_piece){.offset = offset, .bytes = bytes};
    return 0;
}

/* The first n blocks as pieces, in the order of their bytes. */
static int list_pieces(const struct file_arrays *a, size_t n, struct piece_list *pieces,
                       struct brg_error *err)
{
    int rc = 0;
    for (size_t i = 0; i < n && !rc; i++) {
        const struct kept_block *block = &a->kept[i];
        struct io_request request;
        struct io_cursor cursor;
        struct io_part part;
        rc = array_request(&request, &a->table.arrays[block->array], block->start, block->count,
                           NULL, a->bytes + block->at, err);
        if (rc)
            return rc;
        cursor_seek(&cursor, &request, 0);
        while (!rc && cursor_next(&cursor, UINT64_MAX, &part))
            rc = add_piece(pieces, part.offset, part.bytes);
        request_destroy(&request);
    }
    return rc ? brg_error_set(err, rc, "no memory for pieces of small arrays") : 0;
}

/* Forgets the first n blocks. */
static void drop(struct file_arrays *a, size_t n)
{
    size_t gone = n < a->n_kept ? a->kept[n].at : a->n_bytes;
    memmove(a->kept, a->kept + n, (a->n_kept - n) * sizeof *a->kept);
    a->n_kept -= n;
    if (gone)
        memmove(a->bytes, a->bytes + gone, a->n_bytes - gone);
    a->n_bytes -= gone;
    for (size_t i = 0; i < a->n_kept; i++)
        a->kept[i].at -= gone;
}

int kept_write(brg_file *f, size_t until)
{
    struct file_arrays *a = f->arrays;
    struct piece_list pieces = {.list = NULL};
    struct io_request request;
    struct brg_error err = {.code = 0};
    size_t n = 0;
    request_none(&request);
    while (n < a->n_kept && a->kept[n].array < until)
        n++;
    int rc = list_pieces(a, n, &pieces, &err);
    if (!rc)
        rc = request_of_pieces(&request, pieces.list, pieces.n, a->bytes, &err);
    free(pieces.list);
    rc = file_bring(f, FILE_WRITE, &request, rc, &err);
    drop(a, n);
    return rc;
}
