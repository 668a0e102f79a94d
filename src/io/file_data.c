/* Reading and writing: what a program asks for, as a request. */
#include <errno.h>

#include "base/error.h"
#include "io/file_array.h"

uint64_t file_most_bytes(const brg_file *f)
{
    return f->hints.checksums && f->hints.layout == IO_SHARED
               ? STORE_MOST_BLOCKS * f->token.block_bytes
               : UINT64_MAX;
}

static int too_far(const brg_file *f, uint64_t high, struct brg_error *err)
{
    if (high <= file_most_bytes(f))
        return 0;
    return brg_error_set(err, -EFBIG,
                         "%s would be too long for checksums of each %llu bytes: a longer stripe "
                         "(hint stripe), layout=parts or checksums=no take it",
                         f->token.path, (unsigned long long)f->token.block_bytes);
}

/* Bytes at offsets of the program's own. *err (not NULL) says what is wrong with them. */
static int check(const brg_file *f, enum file_action action, struct io_request *request,
                 const void *buf, struct brg_error *err)
{
    int rc = 0;
    if (request->bytes && !buf)
        rc = brg_error_set(err, -EINVAL, FILE_NO_MEMORY);
    if (!rc && request->bytes && action == FILE_WRITE)
        rc = arrays_forbid_bytes(f, err);
    if (!rc && action == FILE_WRITE)
        rc = too_far(f, request->high, err);
    if (rc)
        request_destroy(request);
    return rc;
}

static int bring_pieces(brg_file *f, enum file_action action, const brg_piece *pieces, size_t n,
                        const void *buf, struct brg_error *err)
{
    struct io_request request;
    struct brg_error unwanted;
    if (!f)
        return file_none(err);
    err = err ? err : &unwanted; /* the words must reach the other ranks */
    int rc = request_of_pieces(&request, pieces, n, buf, err);
    rc = rc ? rc : check(f, action, &request, buf, err);
    return file_bring(f, action, &request, rc, err);
}

static int bring_block(brg_file *f, enum file_action action, uint64_t offset, size_t element_bytes,
                       int ndims, const uint64_t *shape, const uint64_t *start,
                       const uint64_t *count, const int64_t *strides, const void *buf,
                       struct brg_error *err)
{
    struct io_request request;
    struct brg_error unwanted;
    if (!f)
        return file_none(err);
    err = err ? err : &unwanted;
    int rc = request_of_block(&request, offset, element_bytes, ndims, shape, start, count, strides,
                              buf, err);
    rc = rc ? rc : check(f, action, &request, buf, err);
    return file_bring(f, action, &request, rc, err);
}

int brg_file_write(brg_file *f, uint64_t offset, const void *buf, size_t nbytes,
                   struct brg_error *err)
{
    brg_piece piece = {.offset = offset, .bytes = nbytes};
    return brg_file_write_pieces(f, &piece, 1, buf, err);
}

int brg_file_write_pieces(brg_file *f, const brg_piece *pieces, size_t n, const void *buf,
                          struct brg_error *err)
{
    return bring_pieces(f, FILE_WRITE, pieces, n, buf, err);
}

int brg_file_write_block(brg_file *f, uint64_t offset, size_t element_bytes, int ndims,
                         const uint64_t *shape, const uint64_t *start, const uint64_t *count,
                         const int64_t *strides, const void *buf, struct brg_error *err)
{
    return bring_block(f, FILE_WRITE, offset, element_bytes, ndims, shape, start, count, strides,
                       buf, err);
}

int brg_file_read(brg_file *f, uint64_t offset, void *buf, size_t nbytes, struct brg_error *err)
{
    brg_piece piece = {.offset = offset, .bytes = nbytes};
    return brg_file_read_pieces(f, &piece, 1, buf, err);
}

int brg_file_read_pieces(brg_file *f, const brg_piece *pieces, size_t n, void *buf,
                         struct brg_error *err)
{
    return bring_pieces(f, FILE_READ, pieces, n, buf, err);
}

int brg_file_read_block(brg_file *f, uint64_t offset, size_t element_bytes, int ndims,
                        const uint64_t *shape, const uint64_t *start, const uint64_t *count,
                        const int64_t *strides, void *buf, struct brg_error *err)
{
    return bring_block(f, FILE_READ, offset, element_bytes, ndims, shape, start, count, strides,
                       buf, err);
}
