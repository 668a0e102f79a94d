/* See type.h. */
#include "type/type.h"

#include <errno.h>
#include <stdlib.h>

#include "type/type_inside.h"

int type_failed(const char *name, int rc, struct brg_error *err)
{
    if (rc == -EOVERFLOW)
        return brg_error_set(err, rc, "%s: its size, or where its bytes lie, passes 63 bits", name);
    if (rc == -ELOOP)
        return brg_error_set(err, rc, "%s: more than %d types that do not merge lie in each other",
                             name, LAYOUT_MAX_DEPTH);
    return rc ? brg_error_set(err, rc, "%s: no memory for the type", name) : 0;
}

static int fits(wide value)
{
    return value <= INT64_MAX && value >= INT64_MIN;
}

int type_make(const char *name, struct placed data, const struct bounds *bounds, struct type **out,
              struct brg_error *err)
{
    const struct layout *l = data.layout;
    wide low = l ? (wide)data.at + l->low : 0, high = l ? (wide)data.at + l->high : 0;
    wide lb = bounds->set_lb ? bounds->lb : low, ub = bounds->set_ub ? bounds->ub : high;
    int rc = fits(low) && fits(high) && fits(lb) && fits(ub) && fits(ub - lb) ? 0 : -EOVERFLOW;
    struct type *type = rc ? NULL : malloc(sizeof *type);
    if (!type) {
        layout_release(data.layout);
        return type_failed(name, rc ? rc : -ENOMEM, err);
    }
    *type = (struct type){.users = 1,
                          .data = data,
                          .lb = (int64_t)lb,
                          .ub = (int64_t)ub,
                          .set_lb = bounds->set_lb != 0,
                          .set_ub = bounds->set_ub != 0};
    *out = type;
    return 0;
}

void bounds_add(struct bounds *b, const struct type *old, wide first, wide last)
{
    wide low = first < last ? first : last, high = first < last ? last : first;
    if (old->set_lb && (!b->set_lb || old->lb + low < b->lb))
        b->lb = old->lb + low;
    if (old->set_ub && (!b->set_ub || old->ub + high > b->ub))
        b->ub = old->ub + high;
    b->set_lb |= old->set_lb;
    b->set_ub |= old->set_ub;
}

struct type *type_share(struct type *type)
{
    atomic_fetch_add_explicit(&type->users, 1, memory_order_relaxed);
    return type;
}

void type_release(struct type *type)
{
    if (!type || atomic_fetch_sub_explicit(&type->users, 1, memory_order_acq_rel) != 1)
        return;
    layout_release(type->data.layout);
    free(type);
}

int type_basic(int64_t bytes, struct type **out, struct brg_error *err)
{
    struct placed data;
    struct bounds none = {0};
    if (bytes < 0)
        return brg_error_set(err, -EINVAL, "basic: a type of %lld bytes", (long long)bytes);
    int rc = layout_data((uint64_t)bytes, &data);
    return rc ? type_failed("basic", rc, err) : type_make("basic", data, &none, out, err);
}

int type_resized(const struct type *old, int64_t lb, int64_t extent, struct type **out,
                 struct brg_error *err)
{
    struct placed data = {.layout = layout_share(old->data.layout), .at = old->data.at};
    struct bounds bounds = {.lb = lb, .ub = (wide)lb + extent, .set_lb = 1, .set_ub = 1};
    return type_make("resized", data, &bounds, out, err);
}

/* ---- one block or many that are equally far from each other ---- */

static int check_counts(const char *name, int64_t count, int64_t length, struct brg_error *err)
{
    if (count < 0)
        return brg_error_set(err, -EINVAL, "%s: count is %lld", name, (long long)count);
    if (length < 0)
        return brg_error_set(err, -EINVAL, "%s: blocklength is %lld", name, (long long)length);
    return 0;
}

/* `count` blocks of `length` of `old`, `stride` bytes apart. */
static int make_vector(const char *name, int64_t count, int64_t length, wide stride,
                       const struct type *old, struct type **out, struct brg_error *err)
{
    struct bounds bounds = {0};
    struct placed block, all = {0};
    int64_t extent = type_extent(old);
    int rc = check_counts(name, count, length, err);
    if (rc)
        return rc;
    if (count == 1)
        stride = 0; /* it does not matter */
    if (!fits(stride))
        return type_failed(name, -EOVERFLOW, err);
    if (count && length) {
        wide along = (wide)(length - 1) * extent, across = (wide)(count - 1) * stride;
        bounds_add(&bounds, old, (along < 0 ? along : 0) + (across < 0 ? across : 0),
                   (along > 0 ? along : 0) + (across > 0 ? across : 0));
    }
    rc = layout_row(old->data, (uint64_t)length, extent, &block);
    if (rc == 0) {
        rc = layout_row(block, (uint64_t)count, (int64_t)stride, &all);
        layout_release(block.layout);
    }
    return rc ? type_failed(name, rc, err) : type_make(name, all, &bounds, out, err);
}

int type_contiguous(int64_t count, const struct type *old, struct type **out, struct brg_error *err)
{
    return make_vector("contiguous", count, 1, type_extent(old), old, out, err);
}

int type_vector(int64_t count, int64_t length, int64_t stride, const struct type *old,
                struct type **out, struct brg_error *err)
{
    return make_vector("vector", count, length, (wide)stride * type_extent(old), old, out, err);
}

int type_hvector(int64_t count, int64_t length, int64_t stride_bytes, const struct type *old,
                 struct type **out, struct brg_error *err)
{
    return make_vector("hvector", count, length, stride_bytes, old, out, err);
}
