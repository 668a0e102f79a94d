/* See file_view.h. */
#include "type/file_view.h"

#include <errno.h>

#include "type/type_inside.h"
#include "type/walk.h"

/* The rules for places, which hold for etype and filetype alike. */
static int check_places(const char *name, const struct type *type, struct brg_error *err)
{
    const struct layout *l = type->data.layout;
    if (type_true_lb(type) < 0)
        return brg_error_set(err, -EINVAL,
                             "the %s has a byte at %lld: no displacement of a view's type may be "
                             "negative",
                             name, (long long)type_true_lb(type));
    if (l && !l->rising)
        return brg_error_set(err, -EINVAL,
                             "the %s goes back: the displacements of a view's type must not fall",
                             name);
    if (l && !l->apart)
        return brg_error_set(err, -ENOTSUP, "the %s has bytes that overlap", name);
    return 0;
}

static int check(int64_t displacement, const struct type *etype, const struct type *filetype,
                 struct brg_error *err)
{
    if (displacement < 0)
        return brg_error_set(err, -EINVAL, "the view's displacement is %lld",
                             (long long)displacement);
    if (type_size(etype) == 0)
        return brg_error_set(err, -EINVAL, "the view's etype has no bytes");
    if (type_size(filetype) % type_size(etype))
        return brg_error_set(
            err, -EINVAL, "the filetype has %llu bytes, which are not whole etypes of %llu",
            (unsigned long long)type_size(filetype), (unsigned long long)type_size(etype));
    int rc = check_places("etype", etype, err);
    if (rc == 0)
        rc = check_places("filetype", filetype, err);
    if (rc || type_size(filetype) == 0)
        return rc;
    int64_t span = type_true_ub(filetype) - type_true_lb(filetype);
    if (type_extent(filetype) < span)
        return brg_error_set(
            err, -ENOTSUP,
            "the filetype's data span %lld bytes and its extent is %lld: its tiles "
            "would lie in each other",
            (long long)span, (long long)type_extent(filetype));
    if (type_true_ub(filetype) > INT64_MAX - displacement)
        return brg_error_set(err, -EOVERFLOW, "the view's first tile ends past 2^63");
    return 0;
}

int file_view_create(struct file_view *view, int64_t displacement, const struct type *etype,
                     const struct type *filetype, struct brg_error *err)
{
    struct placed tile = filetype->data, tiles = {0};
    int rc = check(displacement, etype, filetype, err);
    if (rc)
        return rc;
    if (tile.layout) {
        int64_t extent = type_extent(filetype);
        int64_t room = INT64_MAX - displacement - type_true_ub(filetype);
        tile.at += displacement;
        rc = layout_row(tile, (uint64_t)(room / extent) + 1, extent, &tiles);
    }
    if (rc)
        return type_failed("view", rc, err);
    *view = (struct file_view){
        .displacement = displacement, .etype_bytes = type_size(etype), .data = tiles};
    return 0;
}

void file_view_destroy(struct file_view *view)
{
    layout_release(view->data.layout);
    *view = (struct file_view){0};
}

int64_t file_view_offset(const struct file_view *view, uint64_t position)
{
    struct walk w;
    walk_start(&w, view->data, position);
    return w.run.bytes ? w.run.at : -1;
}

uint64_t file_view_position(const struct file_view *view, int64_t offset)
{
    struct walk w;
    return walk_start_at(&w, view->data, offset);
}

uint64_t file_view_end(const struct file_view *view, int64_t bytes)
{
    uint64_t before = file_view_position(view, bytes);
    return before / view->etype_bytes + (before % view->etype_bytes != 0);
}
