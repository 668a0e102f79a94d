/* Reading and writing: every rank meets the others with its request. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "io/file_array.h"

int file_refuse(const brg_file *f, enum file_action action, struct brg_error *err)
{
    if (f->failure.code) {
        if (err)
            *err = f->failure;
        return f->failure.code;
    }
    if (action == FILE_CLOSE)
        return 0;
    if (f->request)
        return brg_error_set(err, -EBUSY, "%s is being committed: wait for its request first",
                             f->token.path);
    if (f->committed)
        return brg_error_set(err, -EBADF, "%s was committed already: only close may follow",
                             f->token.path);
    if ((action == FILE_READ) != !!(f->token.flags & BRG_READ))
        return brg_error_set(err, -EBADF, "%s was opened for %s", f->token.path,
                             f->token.flags & BRG_READ ? "reading" : "writing");
    return 0;
}

/* With hint async: what was written before, by whomever, must not arrive after what is written now
 * to the same bytes. [low, high) is what all ranks write now. */
static int let_drain(brg_file *f, uint64_t low, uint64_t high)
{
    struct file_hull *behind = &f->behind;
    if (!f->hints.async || low >= high)
        return 0;
    int rc = 0;
    if (low < behind->high && behind->low < high) {
        drain_clear(f->drain, low, high, &f->failure);
        rc = world_failure(f->world, &f->failure);
    }
    file_busy(f, 1);
    if (behind->low == behind->high)
        *behind = (struct file_hull){low, high};
    if (low < behind->low)
        behind->low = low;
    if (high > behind->high)
        behind->high = high;
    return rc;
}

static void write_call(const struct io_call *call, struct io_store *store,
                       struct brg_error *failure)
{
    store_begin_call(store);
    if (move_write(call, failure) == 0)
        store_end_call(store, failure);
}

/* One meeting. *done becomes the action that was served. */
static int meet_once(brg_file *f, enum file_action action, const struct io_request *request,
                     enum file_action *done)
{
    enum {
        ACTION,
        LATEST,
        LOW,
        HIGH,
        DEFINED,
        CONTAINER,
        N
    };
    struct brg_error *failure = &f->failure;
    int64_t v[N] = {action,
                    -(int64_t)action,
                    request->bytes ? (int64_t)request->low : INT64_MAX,
                    -(int64_t)request->high,
                    arrays_defined(f),
                    -(f->arrays != NULL)};
    int rc = world_minimum(f->world, v, N, failure);
    if (rc)
        return rc;
    *done = (enum file_action)v[ACTION];
    if (*done == FILE_COMMIT && -v[LATEST] == FILE_CLOSE) {
        if (action == FILE_CLOSE) {
            brg_error_set(failure, -ECANCELED, "%s was closed by one rank while others commit it",
                          f->token.path);
            strncpy(failure->path, f->token.path, sizeof failure->path - 1);
        }
        return world_failure(f->world, failure);
    }
    f->container = -v[CONTAINER] != 0;
    if (*done == FILE_DEFINE)
        return arrays_agree(f, action, (size_t)v[DEFINED], (enum file_action) - v[LATEST]);
    if (*done != FILE_WRITE && *done != FILE_READ)
        return 0;
    struct io_plan plan = {.transport = IO_DIRECT};
    struct io_call call = {
        .world = f->world, .plan = &plan, .store = f->store, .drain = f->drain, .request = request};
    if (*done == FILE_WRITE && (rc = let_drain(f, (uint64_t)v[LOW], (uint64_t)-v[HIGH])))
        return rc;
    if (*done == FILE_WRITE)
        write_call(&call, f->store, failure);
    else
        move_read(&call, failure);
    if ((uint64_t)-v[HIGH] > f->size && *done == FILE_WRITE)
        f->size = (uint64_t)-v[HIGH];
    return world_failure(f->world, failure);
}

int file_meet(brg_file *f, enum file_action action, const struct io_request *request,
              struct brg_error *err)
{
    enum file_action done = 0;
    int rc = file_refuse(f, action, err);
    if (rc)
        return rc;
    while (!rc && done != action)
        rc = meet_once(f, action, request, &done);
    if (rc && err)
        *err = f->failure;
    return rc;
}

int file_bring(brg_file *f, enum file_action action, struct io_request *request, int rc,
               struct brg_error *err)
{
    /* TODO of the skeleton: a bad argument on one rank must reach the others. */
    if (rc)
        return rc;
    rc = file_meet(f, action, request, err);
    if (!rc && action == FILE_READ)
        request_repeat(request);
    request_destroy(request);
    return rc;
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
    struct io_request request;
    int rc = request_of_pieces(&request, pieces, n, buf, err);
    if (!rc && request.bytes)
        rc = arrays_forbid_bytes(f, err);
    return file_bring(f, FILE_WRITE, &request, rc, err);
}

int brg_file_write_block(brg_file *f, uint64_t offset, size_t element_bytes, int ndims,
                         const uint64_t *shape, const uint64_t *start, const uint64_t *count,
                         const int64_t *strides, const void *buf, struct brg_error *err)
{
    struct io_request request;
    int rc = request_of_block(&request, offset, element_bytes, ndims, shape, start, count, strides,
                              buf, err);
    if (!rc && request.bytes)
        rc = arrays_forbid_bytes(f, err);
    return file_bring(f, FILE_WRITE, &request, rc, err);
}

int brg_file_read(brg_file *f, uint64_t offset, void *buf, size_t nbytes, struct brg_error *err)
{
    brg_piece piece = {.offset = offset, .bytes = nbytes};
    return brg_file_read_pieces(f, &piece, 1, buf, err);
}

int brg_file_read_pieces(brg_file *f, const brg_piece *pieces, size_t n, void *buf,
                         struct brg_error *err)
{
    struct io_request request;
    return file_bring(f, FILE_READ, &request, request_of_pieces(&request, pieces, n, buf, err),
                      err);
}

int brg_file_read_block(brg_file *f, uint64_t offset, size_t element_bytes, int ndims,
                        const uint64_t *shape, const uint64_t *start, const uint64_t *count,
                        const int64_t *strides, void *buf, struct brg_error *err)
{
    struct io_request request;
    return file_bring(f, FILE_READ, &request,
                      request_of_block(&request, offset, element_bytes, ndims, shape, start, count,
                                       strides, buf, err),
                      err);
}
