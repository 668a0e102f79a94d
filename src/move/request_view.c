/* Requests that are a part of a view: two walks, of the file and of memory, side by side. A part is
 * what both have in one run. See request.h. */
#include "move/request_view.h"

#include <errno.h>

#include "base/error.h"

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t mean_run(const struct layout *layout)
{
    return layout->bytes / layout->runs;
}

uint64_t view_mean_run(const struct io_request *request)
{
    uint64_t run = least(mean_run(request->view->data.layout), mean_run(request->into.layout));
    return least(run, request->bytes);
}

/* Where memory goes on elsewhere, the lengths of its runs have come by. */
uint64_t view_bits(const struct io_request *request)
{
    const struct placed *seen = &request->view->data;
    return request->bytes
               ? (uint64_t)seen->at | seen->layout->places | request->into.layout->lengths
               : 0;
}

/* The bytes of memory, and whether the view has as many; 0 or -errno. */
static int measure(struct io_request *r, const struct type *type, uint64_t count,
                   struct brg_error *err)
{
    const struct layout *seen = r->view->data.layout;
    int rc = layout_row(type->data, count, type_extent(type), &r->into);
    if (rc)
        return brg_error_set(err, rc,
                             rc == -EOVERFLOW
                                 ? "%llu copies of the datatype of memory pass 2^63 bytes"
                                 : "no memory for %llu copies of a datatype",
                             (unsigned long long)count);
    r->bytes = r->into.layout ? r->into.layout->bytes : 0;
    if (r->bytes && !seen)
        return brg_error_set(err, -EINVAL, "%llu bytes are asked for, and the view sees none",
                             (unsigned long long)r->bytes);
    if (r->bytes && (r->position >= seen->bytes || r->bytes > seen->bytes - r->position))
        return brg_error_set(err, -EOVERFLOW,
                             "%llu bytes from byte %llu of the view on end past 2^63",
                             (unsigned long long)r->bytes, (unsigned long long)r->position);
    return 0;
}

int request_of_view(struct io_request *request, const struct file_view *view, uint64_t position,
                    const struct type *type, uint64_t count, const void *memory,
                    struct brg_error *err)
{
    request_none(request);
    request->view = view;
    request->position = position;
    request->memory = (char *)(uintptr_t)memory;
    int rc = measure(request, type, count, err);
    if (rc || request->bytes == 0) {
        request_destroy(request);
        return rc;
    }
    request->low = (uint64_t)file_view_offset(view, position);
    request->high = (uint64_t)file_view_offset(view, position + request->bytes - 1) + 1;
    return 0;
}

void request_clip(struct io_request *r, uint64_t end)
{
    if (r->high <= end)
        return;
    uint64_t until = end > r->low ? file_view_position(r->view, (int64_t)end) : r->position;
    r->bytes = until - r->position;
    r->high = r->bytes ? (uint64_t)file_view_offset(r->view, until - 1) + 1 : 0;
    r->low = r->bytes ? r->low : 0;
}

void view_seek(struct io_cursor *c, uint64_t offset)
{
    const struct io_request *r = c->request;
    uint64_t done = 0;
    if (offset >= r->high) {
        c->ended = 1;
        return;
    }
    if (offset > r->low)
        done = walk_start_at(&c->file, r->view->data, (int64_t)offset) - r->position;
    else
        walk_start(&c->file, r->view->data, r->position);
    walk_start(&c->into, r->into, done);
    c->left = r->bytes - done;
}

int view_next(struct io_cursor *c, uint64_t until, struct io_part *part)
{
    uint64_t offset = (uint64_t)c->file.run.at, bytes = least(c->file.run.bytes, c->left);
    if (offset >= until)
        return 0;
    bytes = least(least(bytes, c->into.run.bytes), until - offset);
    *part = (struct io_part){
        .offset = offset, .memory = c->request->memory + c->into.run.at, .bytes = bytes};
    walk_skip(&c->file, bytes);
    walk_skip(&c->into, bytes);
    c->left -= bytes;
    c->ended = c->left == 0;
    return 1;
}
