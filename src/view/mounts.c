/* Comparing mount tables. See mounts.h. */
#include "view/mounts.h"
#include "base/mountinfo.h"
#include "base/text.h"

#include <limits.h>

static int same(const struct mount *a, const struct mount *b)
{
    return a && b && text_same(a->device, b->device) && text_same(a->root, b->root) &&
           text_same(a->point, b->point);
}

/* Whether every mount of `a` below `folder` is one of `b`, too. */
static int has_those_below(const struct mountinfo *a, const struct mountinfo *b, const char *folder)
{
    for (size_t i = 0; i < a->n; i++) {
        const char *point = a->mounts[i].point;
        size_t n = strlen(point);
        if (mountinfo_is_in(point, n, folder) && !text_same(point, folder) &&
            !same(mountinfo_of(a, point, n), mountinfo_of(b, point, n)))
            return 0;
    }
    return 1;
}

static int are_alike(const struct brg_index *x, const struct mountinfo *a,
                     const struct mountinfo *b)
{
    const struct brg_str *roots = (const struct brg_str *)((const char *)x + x->roots_off);
    const struct brg_entry *entries = brg_entries(x);
    for (uint32_t i = 0; i < x->n_roots; i++) {
        char folder[PATH_MAX];
        struct text t = text_in(folder, sizeof folder);
        text_bytes(&t, brg_string(x, roots[i]), roots[i].len);
        if (t.full || !same(mountinfo_of(a, folder, t.len), mountinfo_of(b, folder, t.len)) ||
            !has_those_below(a, b, folder) || !has_those_below(b, a, folder))
            return 0;
    }
    for (uint32_t i = 0; i < x->n_entries; i++) {
        const char *path = brg_string(x, entries[i].path);
        size_t n = entries[i].path.len;
        if (!(entries[i].flags & BRG_COVERED) &&
            !same(mountinfo_of(a, path, n), mountinfo_of(b, path, n)))
            return 0;
    }
    return 1;
}

int mounts_alike(const struct brg_index *x, const char *there)
{
    struct mountinfo a, b;
    if (mountinfo_read(&a, there) != 0)
        return 0;
    int alike = mountinfo_read(&b, MOUNTINFO_HERE) == 0 && are_alike(x, &a, &b);
    mountinfo_free(&a);
    mountinfo_free(&b);
    return alike;
}
