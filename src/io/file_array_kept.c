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
    KEPT_BYTES = 1 << 20,   /* of whole arrays, */
    KEPT_PART = 4,          /* and of a segment not more than one in so many */
    SMALL_BYTES = 16 << 10, /* of a whole array, */
    SMALL_PART = 64,        /* and of a segment not more than one in so many */
    KEPT_BLOCKS = 1024,
    PIECE_BYTES = 64 /* that a piece takes, as it is listed */
};

static uint64_t part_of_segment(const brg_file *f, unsigned part, uint64_t most)
{
    uint64_t bytes = f->hints.segment_bytes / part;
    return bytes < most ? bytes : most;
}

int kept_is_for(const brg_file *f, uint64_t bytes)
{
    return bytes > 0 && bytes <= part_of_segment(f, SMALL_PART, SMALL_BYTES);
}

/* Of what all ranks count alike, and then of what this one holds. */
int kept_full(const brg_file *f)
{
    const struct file_arrays *a = f->arrays;
    return a->kept_whole > part_of_segment(f, KEPT_PART, KEPT_BYTES) ||
           a->table.n - a->agreed >= KEPT_BLOCKS ||
           a->n_pieces > f->hints.segment_bytes / PIECE_BYTES;
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
        a->n_pieces += request.bytes / request_mean_run(&request);
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
    if (!a->n_kept)
        a->n_pieces = 0;
    for (size_t i = 0; i < a->n_kept; i++)
        a->kept[i].at -= gone;
}

int kept_is_brought(const brg_file *f)
{
    return !f->arrays || !f->arrays->n_kept || f->arrays->bringing;
}

/* ---- what rank 0 adds to it ---- */

/* Bytes of its own; from NULL: zeros. */
static int add_bytes(struct file_arrays *a, struct piece_list *pieces, brg_piece piece,
                     const char *from)
{
    int rc = make_room(a, piece.bytes);
    if (rc)
        return rc;
    if (from)
        memcpy(a->bytes + a->n_bytes, from, piece.bytes);
    else
        memset(a->bytes + a->n_bytes, 0, piece.bytes);
    a->n_bytes += piece.bytes;
    return add_piece(pieces, piece.offset, piece.bytes);
}

/* Where arrays that are kept end before the next one begins: so that what is carried to this rank
 * is one run, the checksums of which are known when it has been written. */
static int add_gaps(const brg_file *f, struct piece_list *pieces, uint64_t end)
{
    struct file_arrays *a = f->arrays;
    const struct array_table *t = &a->table;
    int rc = 0;
    for (size_t i = a->agreed; i < t->n && !rc; i++) {
        uint64_t low = t->arrays[i].is.offset + t->arrays[i].bytes;
        uint64_t high = i + 1 < t->n ? t->arrays[i + 1].is.offset : end;
        if (kept_is_for(f, t->arrays[i].bytes) && low < high && high - low < ARRAY_ALIGNMENT)
            rc = add_bytes(a, pieces, (brg_piece){low, high - low}, NULL);
    }
    return rc;
}

static int add_index(brg_file *f, struct piece_list *pieces, uint64_t *begin, struct brg_error *err)
{
    struct file_arrays *a = f->arrays;
    brg_piece index[2];
    char *buf = NULL;
    int rc = arrays_pack_index(f, &buf, index, err);
    if (rc)
        return rc;
    *begin = index[1].offset;
    rc = add_bytes(a, pieces, index[0], buf);
    rc = rc ? rc : add_bytes(a, pieces, index[1], buf + index[0].bytes);
    free(buf);
    return rc ? brg_error_set(err, rc, "no memory for the index of %.200s", f->token.path) : 0;
}

/* ---- writing ---- */

/* The first n blocks, and what is in `pieces` already. Where any rank refuses, nothing is written:
 * they are kept. */
static int write_blocks(brg_file *f, size_t n, struct piece_list *pieces, int rc,
                        struct brg_error *err)
{
    struct io_request request;
    request_none(&request);
    if (!rc)
        rc = request_of_pieces(&request, pieces->list, pieces->n, f->arrays->bytes, err);
    free(pieces->list);
    rc = file_bring(f, FILE_WRITE, &request, rc, err);
    if (!rc)
        drop(f->arrays, n);
    return rc;
}

int kept_write(brg_file *f, size_t until, struct brg_error *err)
{
    struct file_arrays *a = f->arrays;
    struct piece_list pieces = {.list = NULL};
    size_t n = 0;
    while (n < a->n_kept && a->kept[n].array < until)
        n++;
    return write_blocks(f, n, &pieces, list_pieces(a, n, &pieces, err), err);
}

int kept_bring(brg_file *f, int at_end, struct brg_error *err)
{
    struct file_arrays *a = f->arrays;
    struct piece_list pieces = {.list = NULL};
    struct brg_error why = {.code = 0};
    uint64_t end = 0; /* without an index, nothing is known of what follows the last array */
    size_t own_bytes = a->n_bytes;
    int rc = list_pieces(a, a->n_kept, &pieces, &why);
    if (!rc && f->world->rank == 0 && at_end && a->changed)
        rc = add_index(f, &pieces, &end, &why);
    if (!rc && f->world->rank == 0 && f->world->n_nodes > 1 && add_gaps(f, &pieces, end))
        rc = brg_error_set(&why, -ENOMEM, "no memory for what lies between small arrays");
    a->bringing = 1;
    rc = write_blocks(f, a->n_kept, &pieces, rc, &why);
    a->bringing = 0;
    if (rc) /* what was added is made anew for the next attempt */
        a->n_bytes = own_bytes;
    if (!rc && at_end)
        a->changed = 0;
    if (rc && err)
        *err = why;
    return rc;
}
