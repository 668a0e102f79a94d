/* Attributes: kept by each rank, written with the index by rank 0. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "io/file_array.h"

/* The array's number, or -1 for the file. */
static int owner(brg_file *f, const char *array, int64_t *i, struct brg_error *err)
{
    *i = -1;
    if (!array)
        return 0;
    *i = f->arrays ? array_table_find(&f->arrays->table, array) : -1;
    return *i >= 0 ? 0
                   : brg_error_set(err, -ENOENT, "there is no array %.200s in %.200s", array,
                                   f->token.path);
}

/* What is read may be otherwise: it was written by whomever. */
static int check_text(const char *name, brg_type type, size_t count, const char *values,
                      struct brg_error *err)
{
    if (type != BRG_TEXT || count > ARRAY_ATTRIBUTE_BYTES || array_is_utf8(values, count))
        return 0;
    return brg_error_set(err, -EINVAL, "attribute %.200s: text is UTF-8, and this is not", name);
}

int brg_file_set_attribute(brg_file *f, const char *array, const char *name, brg_type type,
                           size_t count, const void *values, struct brg_error *err)
{
    int64_t i = -1;
    struct brg_error why = {.code = 0};
    int rc = file_refuse(f, FILE_WRITE, err);
    if (rc)
        return rc;
    int made = !f->arrays;
    rc = arrays_begin(f, &why);
    if (!rc)
        rc = owner(f, array, &i, &why);
    if (!rc)
        rc = check_text(name, type, count, values, &why);
    if (!rc)
        rc = array_table_set(&f->arrays->table, i, name, strlen(name), type, count, values, &why);
    if (!rc) {
        f->arrays->changed = 1;
        return 0;
    }
    if (made)
        arrays_unmake(f);
    struct io_request nothing;
    request_none(&nothing);
    rc = file_bring(f, FILE_WRITE, &nothing, rc, &why);
    if (err)
        *err = why;
    return rc;
}

int brg_file_get_attribute(brg_file *f, const char *array, const char *name, brg_type *type,
                           size_t *count, const void **values, struct brg_error *err)
{
    int64_t i = -1;
    if (!f)
        return file_none(err);
    if (f->arrays && f->arrays->damage.code)
        return arrays_begin(f, err);
    int rc = owner(f, array, &i, err);
    if (rc)
        return rc;
    const struct io_attribute *found =
        f->arrays ? array_table_attribute(&f->arrays->table, i, name) : NULL;
    if (!found)
        return brg_error_set(err, -ENODATA, "%.200s has no attribute %.200s",
                             array ? array : f->token.path, name);
    *type = found->type;
    *count = found->count;
    *values = found->values;
    return 0;
}

static const struct io_attributes *list(brg_file *f, const char *array)
{
    int64_t i = -1;
    if (!f || !f->arrays || owner(f, array, &i, NULL))
        return NULL;
    return array_table_attributes(&f->arrays->table, i);
}

size_t brg_file_attribute_count(brg_file *f, const char *array)
{
    const struct io_attributes *attributes = list(f, array);
    return attributes ? attributes->n : 0;
}

const char *brg_file_attribute_name(brg_file *f, const char *array, size_t i)
{
    const struct io_attributes *attributes = list(f, array);
    return attributes && i < attributes->n ? attributes->list[i].name : NULL;
}
