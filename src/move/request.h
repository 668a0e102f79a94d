/* What one rank asks of one call: which bytes of its memory lie where in the file. Pure.
 *
 * A request is pieces (any order), a block of an array, or a part of a view, by any datatype of
 * memory. It is walked, never listed: a cursor gives its parts in the order of the file, cut at any
 * boundary, in constant memory. */
#ifndef BRG_IO_REQUEST_H
#define BRG_IO_REQUEST_H

#include "brigade/io.h"
#include "type/file_view.h"
#include "type/walk.h"

/* Bytes that lie together in memory and in the file. */
struct io_part {
    uint64_t offset; /* in the file */
    char *memory;
    size_t bytes;
};

struct io_request {
    char *memory;
    uint64_t bytes;     /* all of them */
    uint64_t low, high; /* hull in the file: [low, high); both 0 when bytes is 0 */
    /* pieces: sorted by offset, without overlap or empty ones; `at` is where each lies in memory */
    size_t n_pieces;
    struct request_piece {
        uint64_t offset, bytes, at;
    } * pieces;
    struct request_piece single; /* where one piece is all there is */
    const brg_piece *given;      /* the caller's, if some of them share bytes; else NULL */
    size_t n_given;
    /* a part of a view: `bytes` of what it sees from byte `position` on */
    const struct file_view *view; /* NULL: not one; the caller's */
    uint64_t position;
    struct placed into; /* where they lie, from `memory` on; shared */
    /* a block: dimensions that lie together were merged; the last one is contiguous bytes */
    int ndims; /* 0: not a block */
    uint64_t count[BRG_MAX_DIMS + 1];
    uint64_t file_stride[BRG_MAX_DIMS + 1]; /* bytes; falling from dimension to dimension */
    int64_t memory_stride[BRG_MAX_DIMS + 1];
};

/* Each returns 0 or -errno (with *err): -EINVAL, -EOVERFLOW past 2^63, -ENOMEM; destroy what
 * succeeded. */
int request_of_pieces(struct io_request *request, const brg_piece *pieces, size_t n,
                      const void *memory, struct brg_error *err);
int request_of_block(struct io_request *request, uint64_t offset, size_t element_bytes, int ndims,
                     const uint64_t *shape, const uint64_t *start, const uint64_t *count,
                     const int64_t *strides, const void *memory, struct brg_error *err);
/* `count` copies of `type` from `memory` on, and the view's bytes from `position` on (not etypes).
 * The view stays as it is until request_destroy; the type may go. -EINVAL too where the view sees
 * nothing, -EOVERFLOW where it ends before the request does. */
int request_of_view(struct io_request *request, const struct file_view *view, uint64_t position,
                    const struct type *type, uint64_t count, const void *memory,
                    struct brg_error *err);
void request_none(struct io_request *request);
/* Of a view: leaves out what lies at `end` in the file or after it, at its end. */
void request_clip(struct io_request *request, uint64_t end);
void request_destroy(struct io_request *request);
/* After a read: what lies in several of the caller's pieces was read into the last of them, and is
 * copied to the others. */
void request_repeat(const struct io_request *request);

/* All parts of a request with bytes begin and end in the file on a multiple of 1 << this. */
uint32_t request_grain(const struct io_request *request);

/* Whether all its bytes lie together, in memory and in the file: 1, and *run. Of none: 0. */
int request_run(const struct io_request *request, struct io_part *run);

/* Bytes by parts, roughly; 0 where there are none. */
uint64_t request_mean_run(const struct io_request *request);

/* How its runs lie in the file, roughly: where there are many, a sample speaks for them. What meets
 * in the file is one run, wherever it lies in memory; runs with at most so many bytes between them
 * are one stretch. Of nothing all are 0. */
#define REQUEST_GAP 4096u
struct request_spread {
    uint64_t stretches, runs; /* how many */
    uint64_t run;             /* mean length of a run */
    uint64_t length;          /* and of a stretch, what lies between its runs included */
    uint64_t pitch;           /* from the beginning of a stretch to that of the next, where they lie
                                 close: the lower quartile; of one its length */
};
struct request_spread request_spread(const struct io_request *request);

struct io_cursor {
    const struct io_request *request;
    size_t piece;
    uint64_t index[BRG_MAX_DIMS + 1];
    uint64_t skip; /* bytes of the current run already given */
    int ended;
    /* of a view: both at the next byte, of which `left` are left */
    uint64_t left;
    struct walk file, into;
};

/* The next part is the first that ends after `offset`, cut to begin there. */
void cursor_seek(struct io_cursor *cursor, const struct io_request *request, uint64_t offset);

/* The next part, cut at `until`. 1, or 0 when no byte is left before `until`. */
int cursor_next(struct io_cursor *cursor, uint64_t until, struct io_part *part);

/* Offset of the byte that cursor_next would begin with, or UINT64_MAX. */
uint64_t cursor_at(const struct io_cursor *cursor);

#endif
