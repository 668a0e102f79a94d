/* See request.h. */
#include "move/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "move/request_overlap.h"
#include "move/request_view.h"

#define HIGHEST ((uint64_t)INT64_MAX)

void request_none(struct io_request *request)
{
    *request = (struct io_request){.pieces = &request->single};
}

void request_destroy(struct io_request *request)
{
    if (request->pieces != &request->single)
        free(request->pieces);
    layout_release(request->into.layout);
    request_none(request);
}

uint64_t request_mean_run(const struct io_request *request)
{
    if (request->view)
        return view_mean_run(request);
    if (request->ndims)
        return request->count[request->ndims - 1];
    return request->n_pieces ? request->bytes / request->n_pieces : 0;
}

uint32_t request_grain(const struct io_request *request)
{
    uint64_t bits = request->low | request->high;
    if (request->view)
        bits |= view_bits(request);
    for (int d = 0; d < request->ndims; d++) {
        int last = d == request->ndims - 1;
        bits |= last ? request->count[d] : request->count[d] > 1 ? request->file_stride[d] : 0;
    }
    for (size_t i = 0; i < request->n_pieces; i++)
        bits |= request->pieces[i].offset | request->pieces[i].bytes;
    return (uint32_t)__builtin_ctzll(bits | UINT64_C(1) << 31);
}

/* ---- pieces ---- */

static int by_offset(const void *a, const void *b)
{
    const struct request_piece *left = a, *right = b;
    if (left->offset != right->offset)
        return left->offset < right->offset ? -1 : 1;
    return left->at < right->at ? -1 : left->at > right->at;
}

static int overlaps(const struct request_piece *pieces, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (pieces[i].offset < pieces[i - 1].offset + pieces[i - 1].bytes)
            return 1;
    return 0;
}

static int is_sorted(const struct request_piece *pieces, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (pieces[i].offset < pieces[i - 1].offset)
            return 0;
    return 1;
}

int request_of_pieces(struct io_request *request, const brg_piece *pieces, size_t n,
                      const void *memory, struct brg_error *err)
{
    struct request_piece *list = &request->single;
    uint64_t at = 0;
    size_t kept = 0;
    request_none(request);
    if (n > 1 && !(list = malloc(n * sizeof *list)))
        return brg_error_set(err, -ENOMEM, "no memory for a list of %zu pieces", n);
    for (size_t i = 0; i < n; i++) {
        if (pieces[i].bytes > HIGHEST - at || pieces[i].offset > HIGHEST - pieces[i].bytes) {
            if (list != &request->single)
                free(list);
            return brg_error_set(
                err, -EOVERFLOW, "piece %zu (offset %llu, %llu bytes) ends past 2^63", i,
                (unsigned long long)pieces[i].offset, (unsigned long long)pieces[i].bytes);
        }
        if (pieces[i].bytes)
            list[kept++] = (struct request_piece){
                .offset = pieces[i].offset, .bytes = pieces[i].bytes, .at = at};
        at += pieces[i].bytes;
    }
    if (!is_sorted(list, kept))
        qsort(list, kept, sizeof *list, by_offset);
    if (overlaps(list, kept)) {
        struct request_piece *apart = malloc(2 * kept * sizeof *apart);
        int rc = apart ? request_part(list, kept, apart, &kept) : -1;
        free(list);
        if (rc) {
            free(apart);
            return brg_error_set(err, -ENOMEM, "no memory for a list of %zu pieces", 2 * n);
        }
        list = apart;
        request->given = pieces;
        request->n_given = n;
    }
    request->memory = (char *)(uintptr_t)memory;
    request->pieces = list;
    request->n_pieces = kept;
    for (size_t i = 0; i < kept; i++)
        request->bytes += list[i].bytes;
    if (kept) {
        request->low = list[0].offset;
        request->high = list[kept - 1].offset + list[kept - 1].bytes;
    }
    return 0;
}

void request_repeat(const struct io_request *request)
{
    char *to = request->memory;
    for (size_t i = 0; i < request->n_given; to += request->given[i++].bytes) {
        const brg_piece *piece = &request->given[i];
        struct io_cursor c;
        struct io_part part;
        cursor_seek(&c, request, piece->offset);
        while (cursor_next(&c, piece->offset + piece->bytes, &part)) {
            char *at = to + (part.offset - piece->offset);
            if (at != part.memory)
                memcpy(at, part.memory, part.bytes);
        }
    }
}

/* ---- a block ---- */

static int bad_block(int ndims, size_t element_bytes, const uint64_t *shape, const uint64_t *start,
                     const uint64_t *count, struct brg_error *err)
{
    if (ndims < 1 || ndims > BRG_MAX_DIMS)
        return brg_error_set(err, -EINVAL, "an array has 1 to %d dimensions, not %d", BRG_MAX_DIMS,
                             ndims);
    if (element_bytes == 0)
        return brg_error_set(err, -EINVAL, "an element has no bytes");
    for (int d = 0; d < ndims; d++)
        if (count[d] && (start[d] >= shape[d] || count[d] > shape[d] - start[d]))
            return brg_error_set(err, -EINVAL,
                                 "dimension %d: %lld elements from %lld on do not lie in %lld", d,
                                 (long long)count[d], (long long)start[d], (long long)shape[d]);
    return 0;
}

/* Adds a dimension, or merges it into the one before where the two make one row, in both. */
static void add_dimension(struct io_request *r, uint64_t count, uint64_t file, int64_t memory)
{
    int last = r->ndims - 1;
    if (count == 1)
        return;
    if (last >= 0 && r->file_stride[last] == file * count &&
        r->memory_stride[last] == memory * (int64_t)count) {
        r->count[last] *= count;
        r->file_stride[last] = file;
        r->memory_stride[last] = memory;
        return;
    }
    r->count[r->ndims] = count;
    r->file_stride[r->ndims] = file;
    r->memory_stride[r->ndims++] = memory;
}

int request_of_block(struct io_request *request, uint64_t offset, size_t element_bytes, int ndims,
                     const uint64_t *shape, const uint64_t *start, const uint64_t *count,
                     const int64_t *strides, const void *memory, struct brg_error *err)
{
    uint64_t file[BRG_MAX_DIMS], row = element_bytes, low = offset, span = 0, bytes = element_bytes;
    int64_t packed[BRG_MAX_DIMS];
    request_none(request);
    int rc = bad_block(ndims, element_bytes, shape, start, count, err);
    if (rc)
        return rc;
    for (int d = ndims - 1; d >= 0; d--) {
        file[d] = row;
        packed[d] = (int64_t)bytes;
        if (__builtin_mul_overflow(row, shape[d], &row) || row > HIGHEST || offset > HIGHEST - row)
            return brg_error_set(err, -EOVERFLOW, "the array ends past 2^63");
        bytes *= count[d];
        low += start[d] * file[d];
        span += count[d] ? (count[d] - 1) * file[d] : 0;
    }
    if (bytes == 0)
        return 0;
    request->memory = (char *)(uintptr_t)memory;
    request->bytes = bytes;
    request->low = low;
    request->high = low + span + element_bytes;
    for (int d = 0; d < ndims; d++)
        add_dimension(request, count[d], file[d], strides ? strides[d] : packed[d]);
    add_dimension(request, element_bytes, 1, 1);
    if (request->ndims == 0) /* one byte */
        request->count[0] = request->file_stride[0] = 1, request->memory_stride[0] = 1,
        request->ndims = 1;
    else if (request->file_stride[request->ndims - 1] != 1 ||
             request->memory_stride[request->ndims - 1] != 1) { /* elements of one byte, apart */
        int d = request->ndims++;
        request->count[d] = request->file_stride[d] = 1;
        request->memory_stride[d] = 1;
    }
    return 0;
}

/* ---- walking ---- */

static void seek_block(struct io_cursor *c, uint64_t offset)
{
    const struct io_request *r = c->request;
    uint64_t left = offset > r->low ? offset - r->low : 0;
    int last = r->ndims - 1;
    if (offset >= r->high) {
        c->ended = 1;
        return;
    }
    for (int d = 0; d <= last; d++) {
        uint64_t i = left / r->file_stride[d];
        if (i >= r->count[d]) { /* past the end of this row: the next one's beginning */
            int up = d - 1;
            while (up >= 0 && ++c->index[up] == r->count[up])
                c->index[up--] = 0;
            c->ended = up < 0;
            for (int k = d; k <= last; k++)
                c->index[k] = 0;
            return;
        }
        c->index[d] = i;
        left -= i * r->file_stride[d];
    }
    c->skip = c->index[last];
    c->index[last] = 0;
}

void cursor_seek(struct io_cursor *c, const struct io_request *request, uint64_t offset)
{
    c->request = request; /* the walks of a view are long, and not touched without need */
    c->skip = 0;
    c->ended = request->bytes == 0;
    if (c->ended)
        return;
    if (request->view) {
        view_seek(c, offset);
        return;
    }
    if (request->ndims) {
        memset(c->index, 0, sizeof c->index);
        seek_block(c, offset);
        return;
    }
    size_t low = 0, high = request->n_pieces;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (request->pieces[middle].offset + request->pieces[middle].bytes <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    c->piece = low;
    c->ended = low == request->n_pieces;
    if (!c->ended && request->pieces[low].offset < offset)
        c->skip = offset - request->pieces[low].offset;
}

/* The whole run under the cursor. */
static struct io_part run_at(const struct io_cursor *c)
{
    const struct io_request *r = c->request;
    if (r->ndims == 0) {
        const struct request_piece *p = &r->pieces[c->piece];
        return (struct io_part){
            .offset = p->offset, .memory = r->memory + p->at, .bytes = p->bytes};
    }
    struct io_part run = {.offset = r->low, .memory = r->memory, .bytes = r->count[r->ndims - 1]};
    for (int d = 0; d < r->ndims - 1; d++) {
        run.offset += c->index[d] * r->file_stride[d];
        run.memory += (int64_t)c->index[d] * r->memory_stride[d];
    }
    return run;
}

static void step(struct io_cursor *c)
{
    const struct io_request *r = c->request;
    c->skip = 0;
    if (r->ndims == 0) {
        c->ended = ++c->piece == r->n_pieces;
        return;
    }
    int d = r->ndims - 2;
    while (d >= 0 && ++c->index[d] == r->count[d])
        c->index[d--] = 0;
    c->ended = d < 0;
}

int cursor_next(struct io_cursor *c, uint64_t until, struct io_part *part)
{
    if (c->ended)
        return 0;
    if (c->request->view)
        return view_next(c, until, part);
    struct io_part run = run_at(c);
    run.offset += c->skip;
    if (run.offset >= until)
        return 0;
    run.memory += c->skip;
    run.bytes -= c->skip;
    if (run.bytes > until - run.offset) {
        run.bytes = until - run.offset;
        c->skip += run.bytes;
    } else
        step(c);
    *part = run;
    return 1;
}

uint64_t cursor_at(const struct io_cursor *c)
{
    if (c->ended)
        return UINT64_MAX;
    return c->request->view ? (uint64_t)c->file.run.at : run_at(c).offset + c->skip;
}

/* ---- as a whole ---- */

int request_run(const struct io_request *request, struct io_part *run)
{
    struct io_cursor cursor;
    if (!request->bytes || request->bytes != request->high - request->low)
        return 0;
    cursor_seek(&cursor, request, request->low);
    return cursor_next(&cursor, request->high, run) && run->bytes == request->bytes;
}
