/* See file_array.h. */
#include "io/file_array.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

void arrays_empty(brg_file *f, uint64_t from)
{
    uint64_t most = file_most_bytes(f);
    struct array_table *t = &f->arrays->table;
    array_table_init(t, from, f->token.stripe_bytes, f->token.block_bytes);
    t->most = most == UINT64_MAX ? most : most - ARRAY_ALIGNMENT - ARRAY_INDEX_MOST;
}

int arrays_begin(brg_file *f, struct brg_error *err)
{
    if (f->arrays) {
        if (f->arrays->damage.code && err)
            *err = f->arrays->damage;
        return f->arrays->damage.code;
    }
    if (f->size)
        return brg_error_set(err, -EINVAL,
                             "%s holds bytes at offsets of its own; arrays need a file to "
                             "themselves",
                             f->token.path);
    f->arrays = calloc(1, sizeof *f->arrays);
    if (!f->arrays)
        return brg_error_set(err, -ENOMEM, "no memory for arrays");
    arrays_empty(f, ARRAY_ALIGNMENT);
    return 0;
}

void arrays_unmake(brg_file *f)
{
    if (f->arrays && !f->arrays->table.n_names)
        arrays_destroy(f);
}

void arrays_destroy(brg_file *f)
{
    if (!f->arrays)
        return;
    array_table_destroy(&f->arrays->table);
    kept_destroy(f->arrays);
    free(f->arrays);
    f->arrays = NULL;
}

int arrays_forbid_bytes(const brg_file *f, struct brg_error *err)
{
    return f->arrays ? brg_error_set(err, -EINVAL,
                                     "%s holds arrays: bytes at offsets of your own would lie "
                                     "upon them",
                                     f->token.path)
                     : 0;
}

int array_request(struct io_request *request, const struct io_array *array, const uint64_t *start,
                  const uint64_t *count, const int64_t *strides, const void *buf,
                  struct brg_error *err)
{
    static const uint64_t one = 1, zero = 0;
    const brg_array *is = &array->is;
    size_t unit = brg_type_bytes(is->type);
    struct brg_error why;
    int rc;
    if (is->ndims == 0)
        rc = request_of_block(request, is->offset, unit, 1, &one, &zero, buf ? &one : &zero, NULL,
                              buf, &why);
    else
        rc = request_of_block(request, is->offset, unit, is->ndims, is->shape, start, count,
                              strides, buf, &why);
    if (!rc && request->bytes && !buf) {
        request_destroy(request);
        rc = brg_error_set(&why, -EINVAL, FILE_NO_MEMORY);
    }
    return rc ? brg_error_set(err, rc, "array %.200s: %.700s", is->name, why.text) : 0;
}

/* ---- agreeing ---- */

int64_t arrays_defined(const brg_file *f)
{
    return f->arrays ? (int64_t)f->arrays->table.n : 0;
}

int64_t arrays_told(const brg_file *f)
{
    const struct array_table *t = f->arrays ? &f->arrays->table : NULL;
    return t && t->n ? (int64_t)t->arrays[t->n - 1].told : 0;
}

/* What one rank says of an array, for the others to compare. */
struct told_array {
    char name[ARRAY_NAME_BYTES + 1];
    int32_t type, ndims;
    uint64_t shape[BRG_MAX_DIMS];
};

static void tell_array(const struct array_table *t, size_t i, struct told_array *told)
{
    memset(told, 0, sizeof *told);
    if (i >= t->n)
        return;
    const brg_array *is = &t->arrays[i].is;
    snprintf(told->name, sizeof told->name, "%s", is->name);
    told->type = (int32_t)is->type;
    told->ndims = is->ndims;
    memcpy(told->shape, is->shape, (size_t)is->ndims * sizeof *is->shape);
}

static void describe_told(const struct told_array *told, char *text, size_t room)
{
    int n = snprintf(text, room, "%.200s, ", told->name);
    array_describe(text + n, room - (size_t)n, (brg_type)told->type, told->ndims, told->shape);
}

static void blame(brg_file *f, int code)
{
    snprintf(f->failure.path, sizeof f->failure.path, "%s", f->token.path);
    f->failure.code = code;
    f->failure.rank = (int)f->world->rank;
}

/* The first of arrays [from, until) that the ranks have defined differently; `until` is such a
 * one, or behind it. */
static int first_difference(brg_file *f, size_t from, size_t until, size_t *which)
{
    while (from < until) {
        size_t middle = from + (until - from) / 2;
        int64_t told = (int64_t)f->arrays->table.arrays[middle].told, v[2] = {told, ~told};
        int rc = world_minimum(f->world, v, 2, &f->failure);
        if (rc)
            return rc;
        if (v[0] == ~v[1])
            from = middle + 1;
        else
            until = middle;
    }
    *which = from;
    return 0;
}

static int disagree(brg_file *f, size_t least)
{
    struct told_array theirs, mine;
    size_t i = 0;
    int rc = first_difference(f, f->arrays->agreed, least - 1, &i);
    tell_array(&f->arrays->table, i, &mine);
    theirs = mine;
    if (!rc)
        rc = world_share(f->world, &theirs, sizeof theirs, 0, &f->failure);
    if (rc)
        return rc;
    if (memcmp(&mine, &theirs, sizeof mine)) {
        char here[512], there[512];
        describe_told(&mine, here, sizeof here);
        describe_told(&theirs, there, sizeof there);
        brg_error_set(&f->failure, -EINVAL,
                      "array %zu of %.200s is %s on rank 0, and %s on rank %u: name, type, shape "
                      "and order of arrays must be the same on every rank",
                      i, f->token.path, there, here, f->world->rank);
        blame(f, -EINVAL);
    }
    return world_failure(f->world, &f->failure);
}

/* Some rank has come to commit without an array that others have defined. */
static int lacking(brg_file *f)
{
    size_t agreed = f->arrays ? f->arrays->agreed : 0;
    int lacks = arrays_defined(f) == (int64_t)agreed;
    int64_t who = lacks ? INT64_MAX : (int64_t)f->world->rank;
    struct told_array told;
    memset(&told, 0, sizeof told);
    int rc = world_minimum(f->world, &who, 1, &f->failure);
    if (!rc && !lacks)
        tell_array(&f->arrays->table, agreed, &told);
    if (!rc)
        rc = world_share(f->world, &told, sizeof told, (uint32_t)who, &f->failure);
    if (rc)
        return rc;
    if (lacks) {
        brg_error_set(&f->failure, -EINVAL,
                      "rank %u has come to the end of %.200s without array %.200s, which others "
                      "write: every rank must write an array once, if only a count of 0",
                      f->world->rank, f->token.path, told.name);
        blame(f, -EINVAL);
    }
    return world_failure(f->world, &f->failure);
}

static int any_kept(const brg_file *f, size_t from, size_t until)
{
    for (size_t i = from; i < until; i++)
        if (kept_is_for(f, f->arrays->table.arrays[i].bytes))
            return 1;
    return 0;
}

int arrays_agree(brg_file *f, enum file_action action, size_t least, int same,
                 enum file_action latest, struct brg_error *refusal)
{
    struct file_arrays *a = f->arrays;
    if (latest == FILE_CLOSE) {
        if (action == FILE_CLOSE) {
            brg_error_set(&f->failure, -ECANCELED,
                          "%.200s was closed by rank %u while others write arrays", f->token.path,
                          f->world->rank);
            blame(f, -ECANCELED);
        }
        return world_failure(f->world, &f->failure);
    }
    if (!a || least == a->agreed)
        return lacking(f);
    int64_t told = (int64_t)a->table.arrays[least - 1].told, v[2] = {told, ~told};
    int rc = same ? 0 : world_minimum(f->world, v, 2, &f->failure);
    if (rc)
        return rc;
    if (v[0] != ~v[1])
        return disagree(f, least);
    size_t before = a->agreed;
    a->agreed = least;
    rc = any_kept(f, before, least) ? kept_write(f, least, refusal) : 0;
    if (rc) /* refused: it is still to be written */
        a->agreed = before;
    else if (least == a->table.n)
        a->kept_whole = 0;
    return rc;
}

void arrays_are_same(brg_file *f, int brought)
{
    struct file_arrays *a = f->arrays;
    if (!a)
        return;
    a->same = a->table.n;
    if (!brought && any_kept(f, a->agreed, a->same))
        return;
    a->agreed = a->same;
    a->kept_whole = 0;
}

int arrays_may_agree_later(const brg_file *f)
{
    return !store_as_it_lies(&f->token);
}

int arrays_are_settled(const brg_file *f)
{
    return !f->arrays || f->arrays->agreed == f->arrays->table.n;
}

int arrays_settle(brg_file *f, struct brg_error *err)
{
    struct io_request nothing;
    int rc = 0;
    request_none(&nothing);
    if (!arrays_are_settled(f) && arrays_may_agree_later(f))
        rc = kept_bring(f, 0, err);
    while (!rc && !arrays_are_settled(f))
        rc = file_meet(f, FILE_DEFINE, &nothing, err);
    return rc;
}

/* ---- the program's calls ---- */

/* Finds the array, or defines it. */
static int find_or_define(brg_file *f, const char *name, brg_type type, int ndims,
                          const uint64_t *shape, size_t *i, int *is_new, struct brg_error *err)
{
    int64_t found = array_table_find(&f->arrays->table, name);
    *is_new = found < 0;
    *i = found < 0 ? f->arrays->table.n : (size_t)found;
    if (found >= 0)
        return array_table_same(&f->arrays->table, *i, type, ndims, shape, err);
    int rc = array_table_add(&f->arrays->table, name, strlen(name), type, ndims, shape, NULL, err);
    f->arrays->changed |= rc == 0;
    return rc;
}

int brg_file_write_array(brg_file *f, const char *name, brg_type type, int ndims,
                         const uint64_t *shape, const uint64_t *start, const uint64_t *count,
                         const int64_t *strides, const void *buf, struct brg_error *err)
{
    struct io_request request;
    struct brg_error unwanted;
    size_t i = 0;
    int is_new = 0, made = 0, rc = file_refuse(f, FILE_WRITE, err);
    err = err ? err : &unwanted; /* the words must reach the other ranks */
    request_none(&request);
    if (rc)
        return rc;
    made = !f->arrays;
    rc = arrays_begin(f, err);
    if (!rc && kept_full(f) && (rc = arrays_settle(f, err)))
        return rc;
    if (!rc)
        rc = find_or_define(f, name, type, ndims, shape, &i, &is_new, err);
    if (!rc && is_new && kept_is_for(f, f->arrays->table.arrays[i].bytes)) {
        rc = kept_add(f, i, start, count, strides, buf, err);
        if (!rc)
            return 0;
    } else if (!rc) {
        if (!(is_new && arrays_may_agree_later(f)) && (rc = arrays_settle(f, err)))
            return rc;
        rc = array_request(&request, &f->arrays->table.arrays[i], start, count, strides, buf, err);
    }
    if (rc && made)
        arrays_unmake(f);
    rc = file_bring(f, FILE_WRITE, &request, rc, err);
    return rc || !is_new || i < f->arrays->same ? rc : arrays_settle(f, err);
}
