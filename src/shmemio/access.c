/* Reading and writing: one PE alone, or all together by the one-sided engine. */
#include <stdio.h>

#include "base/error.h"
#include "move/alone.h"
#include "move/move.h"
#include "shmemio/inside.h"

/* One call of one PE. */
struct access {
    struct shmem_file *file;
    int writes, together;
    uint64_t offset; /* etypes of the view */
    struct io_request request;
};

static int check_amode(const struct access *a, struct brg_error *err)
{
    const struct shmem_file *f = a->file;
    if (a->writes && f->amode & SHMEM_MODE_RDONLY)
        return brg_error_set(err, -EROFS, "cannot write %s: it is open SHMEM_MODE_RDONLY",
                             f->token.path);
    if (!a->writes && f->amode & SHMEM_MODE_WRONLY)
        return brg_error_set(err, -EACCES, "cannot read %s: it is open SHMEM_MODE_WRONLY",
                             f->token.path);
    return 0;
}

/* The request, empty where the arguments cannot be taken. */
static int prepare(struct access *a, SHMEM_Offset offset, const void *buf, SHMEM_Count count,
                   SHMEM_Datatype handle, struct brg_error *err)
{
    const struct shmem_file *f = a->file;
    const char *verb = a->writes ? "write" : "read";
    struct type *type = NULL;
    uint64_t position = 0, etype = f->view.etype_bytes;
    int rc = check_amode(a, err);
    if (!rc && count < 0)
        rc = brg_error_set(err, -WRONG_COUNT, "cannot %s %lld elements of %s", verb,
                           (long long)count, f->token.path);
    if (!rc && (offset < 0 || __builtin_mul_overflow((uint64_t)offset, etype, &position)))
        rc = brg_error_set(err, -EINVAL, "cannot %s %s at etype %lld of its view", verb,
                           f->token.path, (long long)offset);
    rc = rc ? rc : datatype_of(handle, 1, &type, err);
    if (!rc && etype && type_size(type) * (uint64_t)count % etype)
        rc = brg_error_set(err, -EINVAL,
                           "cannot %s %lld elements of %llu bytes of %s: they are no whole etypes "
                           "of %llu bytes",
                           verb, (long long)count, (unsigned long long)type_size(type),
                           f->token.path, (unsigned long long)etype);
    rc =
        rc ? rc : request_of_view(&a->request, &f->view, position, type, (uint64_t)count, buf, err);
    if (rc)
        request_none(&a->request);
    a->offset = rc ? 0 : (uint64_t)offset;
    type_release(type);
    return rc;
}

/* Bytes of the request that lie before the end of a file of `size`. */
static uint64_t before_end(const struct io_request *r, uint64_t size)
{
    if (r->high <= size)
        return r->bytes;
    uint64_t until = file_view_position(r->view, (int64_t)size);
    return until > r->position ? until - r->position : 0;
}

static int write_alone(struct shmem_file *f, const struct io_request *r, struct brg_error *err)
{
    hull_add(&f->behind, r->low, r->high);
    store_begin_call(f->store);
    int rc = alone_write(f->store, r, alone_where(f->store, r, 0, 1), err);
    return rc ? rc : file_end_stream(f, err);
}

static int move_alone(struct access *a, uint64_t *moved, struct brg_error *err)
{
    struct shmem_file *f = a->file;
    const struct io_request *r = &a->request;
    int rc = r->bytes == 0 ? 0
             : a->writes   ? write_alone(f, r, err)
                           : alone_read(f->store, r, alone_where(f->store, r, 0, 1), moved, err);
    if (a->writes && !rc) {
        *moved = r->bytes;
        f->size = r->high > f->size ? r->high : f->size;
    }
    return rc;
}

/* What was written together is seen by who comes alone next, too: of a file in place, which others
 * may have open, and where this PE may read. To a file that is only written, and published, what
 * another PE wrote for this one is shown when a call needs it. */
static int shows_at_once(const struct shmem_file *f)
{
    return f->hints.publish == IO_PUBLISH_NO || !(f->amode & SHMEM_MODE_WRONLY);
}

static int move_together(struct access *a, uint64_t *moved, struct brg_error *failure)
{
    struct shmem_file *f = a->file;
    struct onesided_call call = {.o = f->windows->onesided,
                                 .hints = &f->hints,
                                 .place = move_place(&f->token, a->writes),
                                 .size = f->size,
                                 .grows = f->hints.publish == IO_PUBLISH_NO,
                                 .shows = shows_at_once(f),
                                 .behind = &f->behind,
                                 .refused = failure,
                                 .store = f->store,
                                 .drain = f->drain,
                                 .request = &a->request};
    struct brg_error err = NO_FAILURE;
    uint64_t size = 0;
    int rc = a->writes ? onesided_write(&call, &size, &err) : onesided_read(&call, &size, &err);
    if (rc) {
        *failure = err;
        return rc;
    }
    f->size = size;
    *moved = a->writes ? a->request.bytes : before_end(&a->request, size);
    return 0;
}

/* The pointer goes on by what was asked for when writing, by what was there when reading. */
static int move(struct shmem_file *f, int writes, int together, const SHMEM_Offset *at,
                const void *buf, SHMEM_Count count, SHMEM_Datatype type, SHMEM_Status *status)
{
    struct brg_error failure = NO_FAILURE;
    struct access a = {.file = f, .writes = writes, .together = together};
    uint64_t moved = 0;
    if (file_check(f, &failure))
        return shmemio_end(&failure);
    int rc = prepare(&a, at ? *at : (SHMEM_Offset)f->position, buf, count, type, &failure);
    if (together)
        rc = move_together(&a, &moved, &failure);
    else if (!rc)
        rc = move_alone(&a, &moved, &failure);
    request_destroy(&a.request);
    if (rc) {
        file_name_path(f, &failure);
        if (writes)
            file_keep_failure(f, &failure);
    } else if (!at && f->view.etype_bytes)
        f->position += moved / f->view.etype_bytes;
    int code = shmemio_end(&failure);
    if (status)
        *status = (SHMEM_Status){.SHMEM_ERROR = code, .bytes = (int64_t)moved};
    return code;
}

int SHMEM_File_read_at(SHMEM_File file, SHMEM_Offset offset, void *buf, SHMEM_Count count,
                       SHMEM_Datatype type, SHMEM_Status *status)
{
    return move(file, 0, 0, &offset, buf, count, type, status);
}

int SHMEM_File_write_at(SHMEM_File file, SHMEM_Offset offset, const void *buf, SHMEM_Count count,
                        SHMEM_Datatype type, SHMEM_Status *status)
{
    return move(file, 1, 0, &offset, buf, count, type, status);
}

int SHMEM_File_read_at_all(SHMEM_File file, SHMEM_Offset offset, void *buf, SHMEM_Count count,
                           SHMEM_Datatype type, SHMEM_Status *status)
{
    return move(file, 0, 1, &offset, buf, count, type, status);
}

int SHMEM_File_write_at_all(SHMEM_File file, SHMEM_Offset offset, const void *buf,
                            SHMEM_Count count, SHMEM_Datatype type, SHMEM_Status *status)
{
    return move(file, 1, 1, &offset, buf, count, type, status);
}

int SHMEM_File_read(SHMEM_File file, void *buf, SHMEM_Count count, SHMEM_Datatype type,
                    SHMEM_Status *status)
{
    return move(file, 0, 0, NULL, buf, count, type, status);
}

int SHMEM_File_write(SHMEM_File file, const void *buf, SHMEM_Count count, SHMEM_Datatype type,
                     SHMEM_Status *status)
{
    return move(file, 1, 0, NULL, buf, count, type, status);
}

int SHMEM_File_read_all(SHMEM_File file, void *buf, SHMEM_Count count, SHMEM_Datatype type,
                        SHMEM_Status *status)
{
    return move(file, 0, 1, NULL, buf, count, type, status);
}

int SHMEM_File_write_all(SHMEM_File file, const void *buf, SHMEM_Count count, SHMEM_Datatype type,
                         SHMEM_Status *status)
{
    return move(file, 1, 1, NULL, buf, count, type, status);
}
