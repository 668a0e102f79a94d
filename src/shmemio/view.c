/* Views of files, and this PE's own pointer. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "shmemio/inside.h"

/* What a set_view is about to make of a file. */
struct choice {
    struct file_view view;
    struct type *etype, *filetype;
};

static int choose(struct choice *c, SHMEM_Offset displacement, SHMEM_Datatype etype,
                  SHMEM_Datatype filetype, struct brg_error *err)
{
    *c = (struct choice){0};
    int rc = datatype_of(etype, 1, &c->etype, err);
    rc = rc ? rc : datatype_of(filetype, 1, &c->filetype, err);
    rc = rc ? rc : file_view_create(&c->view, displacement, c->etype, c->filetype, err);
    if (!rc && !c->view.data.layout)
        c->view.etype_bytes = type_size(c->etype);
    return rc;
}

static void drop(struct choice *c)
{
    file_view_destroy(&c->view);
    type_release(c->etype);
    type_release(c->filetype);
}

static void take(struct shmem_file *f, struct choice *c, SHMEM_Datatype etype,
                 SHMEM_Datatype filetype)
{
    view_drop(f);
    f->view = c->view;
    f->etype = c->etype;
    f->filetype = c->filetype;
    f->basic_etype = datatype_is_basic(etype) ? etype : SHMEM_DATATYPE_NULL;
    f->basic_filetype = datatype_is_basic(filetype) ? filetype : SHMEM_DATATYPE_NULL;
    f->position = 0;
}

int view_start(struct shmem_file *f, struct brg_error *err)
{
    struct choice c;
    int rc = choose(&c, 0, SHMEM_BYTE, SHMEM_BYTE, err);
    if (rc)
        drop(&c);
    else
        take(f, &c, SHMEM_BYTE, SHMEM_BYTE);
    return rc;
}

void view_drop(struct shmem_file *f)
{
    struct choice old = {.view = f->view, .etype = f->etype, .filetype = f->filetype};
    drop(&old);
}

/* All PEs have etypes of one size, or offsets would mean different things. */
static int compare_etypes(struct shmem_file *f, uint64_t bytes, struct brg_error *err)
{
    int64_t v[2] = {(int64_t)bytes, -(int64_t)bytes};
    int rc = f->pgas->reduce(f->pgas, PGAS_MIN, v, 2, err);
    if (!rc && v[0] != -v[1])
        rc = brg_error_set(err, -NOT_SAME,
                           "the etypes of the view of %s are of %lld and of %lld bytes",
                           f->token.path, (long long)v[0], (long long)-v[1]);
    return rc;
}

int SHMEM_File_set_view(SHMEM_File f, SHMEM_Offset displacement, SHMEM_Datatype etype,
                        SHMEM_Datatype filetype, const char *datarep, SHMEM_Info info)
{
    struct brg_error failure = NO_FAILURE;
    struct choice c = {0};
    (void)info; /* hints of a view: none is known */
    if (file_check(f, &failure))
        return shmemio_end(&failure);
    if (!datarep || strcmp(datarep, "native") != 0)
        brg_error_set(&failure, -WRONG_DATAREP,
                      "there is no data representation \"%s\" here: there is \"native\"",
                      datarep ? datarep : "NULL");
    else
        choose(&c, displacement, etype, filetype, &failure);
    int rc = file_agree(f, &failure);
    rc = rc ? rc : compare_etypes(f, type_size(c.etype), &failure);
    file_name_path(f, &failure);
    if (rc)
        drop(&c);
    else
        take(f, &c, etype, filetype);
    return shmemio_end(&failure);
}

static int give(SHMEM_Datatype basic, struct type *type, SHMEM_Datatype *out)
{
    *out = basic ? basic : datatype_make(type_share(type), 1);
    return *out ? SHMEM_SUCCESS : shmemio_refuse(-ENOMEM, "no memory for a datatype");
}

int SHMEM_File_get_view(SHMEM_File f, SHMEM_Offset *displacement, SHMEM_Datatype *etype,
                        SHMEM_Datatype *filetype, char *datarep)
{
    struct brg_error failure = NO_FAILURE;
    SHMEM_Datatype of, by;
    if (file_check(f, &failure))
        return shmemio_end(&failure);
    int code = give(f->basic_etype, f->etype, &of);
    if (code)
        return code;
    code = give(f->basic_filetype, f->filetype, &by);
    if (code) {
        if (!f->basic_etype)
            SHMEM_Type_free(&of);
        return code;
    }
    *displacement = f->view.displacement;
    *etype = of;
    *filetype = by;
    snprintf(datarep, SHMEM_MAX_DATAREP_STRING, "native");
    return SHMEM_SUCCESS;
}

int SHMEM_File_get_byte_offset(SHMEM_File f, SHMEM_Offset offset, SHMEM_Offset *byte)
{
    struct brg_error failure = NO_FAILURE;
    uint64_t position;
    if (file_check(f, &failure))
        return shmemio_end(&failure);
    if (offset < 0 || __builtin_mul_overflow((uint64_t)offset, f->view.etype_bytes, &position) ||
        file_view_offset(&f->view, position) < 0)
        return shmemio_refuse(-EINVAL, "the view of %s has no etype %lld", f->token.path,
                              (long long)offset);
    *byte = file_view_offset(&f->view, position);
    return SHMEM_SUCCESS;
}

/* ---- the pointer ---- */

int SHMEM_File_seek(SHMEM_File f, SHMEM_Offset offset, int whence)
{
    struct brg_error failure = NO_FAILURE;
    SHMEM_Offset from = 0, size, to;
    if (file_check(f, &failure))
        return shmemio_end(&failure);
    if (whence == SHMEM_SEEK_CUR)
        from = (SHMEM_Offset)f->position;
    else if (whence == SHMEM_SEEK_END) {
        int code = SHMEM_File_get_size(f, &size);
        if (code)
            return code;
        from = (SHMEM_Offset)file_view_end(&f->view, size);
    } else if (whence != SHMEM_SEEK_SET)
        return shmemio_refuse(-EINVAL, "%d is no SHMEM_SEEK_*", whence);
    if (__builtin_add_overflow(from, offset, &to) || to < 0)
        return shmemio_refuse(-EINVAL,
                              "the view of %s has no place before its beginning or past "
                              "2^63: %lld and %lld etypes",
                              f->token.path, (long long)from, (long long)offset);
    f->position = (uint64_t)to;
    return SHMEM_SUCCESS;
}

int SHMEM_File_get_position(SHMEM_File f, SHMEM_Offset *offset)
{
    struct brg_error failure = NO_FAILURE;
    if (!file_check(f, &failure))
        *offset = (SHMEM_Offset)f->position;
    return shmemio_end(&failure);
}
