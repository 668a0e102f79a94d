/* Types that list where their blocks lie: indexed types and structs. See type.h. */
#include <errno.h>

#include "type/type.h"
#include "type/type_inside.h"

/* What the constructors differ in. */
struct blocks {
    const char *name;
    int64_t count;
    const int64_t *lengths; /* or NULL: all are `length` */
    int64_t length;
    const int64_t *displacements;
    int64_t unit;             /* bytes of a displacement's step */
    struct type *const *olds; /* or NULL: all are `old` */
    const struct type *old;
};

/* A block as it was made last: in most lists the next one is like it. */
struct block {
    const struct type *old;
    int64_t length;
    struct placed data;
};

static int add_block(const struct blocks *b, int64_t i, struct layout_maker *maker,
                     struct bounds *bounds, struct block *last)
{
    const struct type *old = b->olds ? b->olds[i] : b->old;
    int64_t length = b->lengths ? b->lengths[i] : b->length, extent = type_extent(old), at;
    wide place = (wide)b->displacements[i] * b->unit, along = (wide)(length - 1) * extent;
    if (length == 0)
        return 0;
    bounds_add(bounds, old, place + (along < 0 ? along : 0), place + (along > 0 ? along : 0));
    if (last->old != old || last->length != length) {
        layout_release(last->data.layout);
        *last = (struct block){.old = old, .length = length};
        int rc = layout_row(old->data, (uint64_t)length, extent, &last->data);
        if (rc)
            return rc;
    }
    place += last->data.at;
    at = (int64_t)place;
    return place == at ? layout_add(maker, (struct placed){.layout = last->data.layout, .at = at})
                       : -EOVERFLOW;
}

static int make_list(const struct blocks *b, struct type **out, struct brg_error *err)
{
    struct layout_maker maker = {0};
    struct bounds bounds = {0};
    struct block last = {0};
    struct placed data;
    int rc = 0;
    if (b->count < 0)
        return brg_error_set(err, -EINVAL, "%s: count is %lld", b->name, (long long)b->count);
    if (!b->lengths && b->length < 0)
        return brg_error_set(err, -EINVAL, "%s: blocklength is %lld", b->name,
                             (long long)b->length);
    for (int64_t i = 0; b->lengths && i < b->count; i++)
        if (b->lengths[i] < 0)
            return brg_error_set(err, -EINVAL, "%s: blocklength %lld is %lld", b->name,
                                 (long long)i, (long long)b->lengths[i]);
    for (int64_t i = 0; rc == 0 && i < b->count; i++)
        rc = add_block(b, i, &maker, &bounds, &last);
    layout_release(last.data.layout);
    if (rc)
        layout_drop(&maker);
    else
        rc = layout_finish(&maker, &data);
    return rc ? type_failed(b->name, rc, err) : type_make(b->name, data, &bounds, out, err);
}

int type_indexed(int64_t count, const int64_t *lengths, const int64_t *displacements,
                 const struct type *old, struct type **out, struct brg_error *err)
{
    struct blocks b = {.name = "indexed", .count = count, .lengths = lengths, .old = old};
    b.displacements = displacements;
    b.unit = type_extent(old);
    return make_list(&b, out, err);
}

int type_hindexed(int64_t count, const int64_t *lengths, const int64_t *displacements_bytes,
                  const struct type *old, struct type **out, struct brg_error *err)
{
    struct blocks b = {.name = "hindexed", .count = count, .lengths = lengths, .old = old};
    b.displacements = displacements_bytes;
    b.unit = 1;
    return make_list(&b, out, err);
}

int type_indexed_block(int64_t count, int64_t length, const int64_t *displacements,
                       const struct type *old, struct type **out, struct brg_error *err)
{
    struct blocks b = {.name = "indexed_block", .count = count, .length = length, .old = old};
    b.displacements = displacements;
    b.unit = type_extent(old);
    return make_list(&b, out, err);
}

int type_hindexed_block(int64_t count, int64_t length, const int64_t *displacements_bytes,
                        const struct type *old, struct type **out, struct brg_error *err)
{
    struct blocks b = {.name = "hindexed_block", .count = count, .length = length, .old = old};
    b.displacements = displacements_bytes;
    b.unit = 1;
    return make_list(&b, out, err);
}

int type_struct(int64_t count, const int64_t *lengths, const int64_t *displacements_bytes,
                struct type *const *olds, struct type **out, struct brg_error *err)
{
    struct blocks b = {.name = "struct", .count = count, .lengths = lengths, .olds = olds};
    b.displacements = displacements_bytes;
    b.unit = 1;
    return make_list(&b, out, err);
}
