/* See layout.h. */
#include "type/layout.h"

#include <errno.h>
#include <stdlib.h>

typedef __int128 wide; /* no sum of two products of 63 bits leaves it */

static int fits(wide value)
{
    return value <= INT64_MAX && value >= INT64_MIN;
}

struct layout *layout_share(struct layout *layout)
{
    if (layout)
        atomic_fetch_add_explicit(&layout->users, 1, memory_order_relaxed);
    return layout;
}

void layout_release(struct layout *layout)
{
    while (layout && atomic_fetch_sub_explicit(&layout->users, 1, memory_order_acq_rel) == 1) {
        struct layout *child = layout->child;
        for (uint64_t i = 0; layout->children && i < layout->count; i++)
            layout_release(layout->children[i]);
        free(layout->children);
        free(layout->entries);
        free(layout);
        layout = child;
    }
}

int layout_data(uint64_t bytes, struct placed *out)
{
    *out = (struct placed){0};
    if (bytes == 0)
        return 0;
    if (bytes > INT64_MAX)
        return -EOVERFLOW;
    struct layout *l = malloc(sizeof *l);
    if (!l)
        return -ENOMEM;
    *l = (struct layout){.users = 1,
                         .kind = LAYOUT_DATA,
                         .rising = 1,
                         .apart = 1,
                         .bytes = bytes,
                         .runs = 1,
                         .high = (int64_t)bytes,
                         .end = (int64_t)bytes,
                         .places = bytes,
                         .lengths = bytes};
    out->layout = l;
    return 0;
}

/* ---- rows ---- */

/* The hull and order of `count` children in a row; 0 or -EOVERFLOW. */
static int measure_row(struct layout *row)
{
    const struct layout *child = row->child;
    wide reach = (wide)(row->count - 1) * row->stride, bytes = (wide)row->count * child->bytes;
    wide low = child->low + (reach < 0 ? reach : 0), high = child->high + (reach > 0 ? reach : 0);
    if (row->count > INT64_MAX || !fits(bytes) || !fits(low) || !fits(high) || !fits(high - low))
        return -EOVERFLOW;
    row->bytes = (uint64_t)bytes;
    row->low = (int64_t)low;
    row->high = (int64_t)high;
    row->last = (int64_t)(reach + child->last);
    row->end = (int64_t)(reach + child->end);
    row->rising = child->rising && row->stride >= child->last;
    row->apart = child->apart && row->stride >= child->high; /* apart, it begins with its lowest */
    row->places = child->places | (uint64_t)row->stride;
    row->lengths = child->lengths;
    row->runs = UINT64_MAX;
    if (child->runs > INT64_MAX)
        return 0;
    wide runs = (wide)row->count * child->runs;
    if (child->end == row->stride) /* the last run of a child goes on in the next child */
        runs -= row->count - 1;
    if (runs < UINT64_MAX)
        row->runs = (uint64_t)runs;
    return 0;
}

int layout_row(struct placed child, uint64_t count, int64_t stride, struct placed *out)
{
    struct layout *of = child.layout;
    *out = (struct placed){0};
    if (!of || count == 0)
        return 0;
    if (count == 1) {
        *out = (struct placed){.layout = layout_share(of), .at = child.at};
        return 0;
    }
    if (of->kind == LAYOUT_DATA && (uint64_t)stride == of->bytes) {
        if (count > (uint64_t)INT64_MAX / of->bytes)
            return -EOVERFLOW;
        int rc = layout_data(of->bytes * count, out);
        out->at = child.at;
        return rc;
    }
    if (of->kind == LAYOUT_ROW && (wide)of->stride * of->count == stride) {
        if (count > (uint64_t)INT64_MAX / of->count)
            return -EOVERFLOW;
        return layout_row((struct placed){.layout = of->child, .at = child.at}, count * of->count,
                          of->stride, out);
    }
    if (of->depth == LAYOUT_MAX_DEPTH)
        return -ELOOP;
    struct layout *l = malloc(sizeof *l);
    if (!l)
        return -ENOMEM;
    *l = (struct layout){.users = 1,
                         .kind = LAYOUT_ROW,
                         .depth = of->depth + 1,
                         .count = count,
                         .stride = stride,
                         .child = of};
    int rc = measure_row(l);
    if (rc) {
        free(l);
        return rc;
    }
    layout_share(of);
    *out = (struct placed){.layout = l, .at = child.at};
    return 0;
}

/* ---- lists ---- */

void layout_drop(struct layout_maker *m)
{
    for (size_t i = 0; m->children && i < m->n; i++)
        layout_release(m->children[i]);
    free(m->children);
    free(m->entries);
    *m = (struct layout_maker){0};
}

static int more_room(struct layout_maker *m, int for_children)
{
    if (m->n == m->room) {
        size_t room = m->room ? 2 * m->room : 8;
        struct layout_entry *entries = realloc(m->entries, room * sizeof *entries);
        if (!entries)
            return -ENOMEM;
        m->entries = entries;
        if (m->children) {
            struct layout **children = realloc(m->children, room * sizeof *children);
            if (!children)
                return -ENOMEM;
            m->children = children;
        }
        m->room = room;
    }
    if (for_children && !m->children)
        m->children = calloc(m->room, sizeof *m->children);
    return for_children && !m->children ? -ENOMEM : 0;
}

int layout_add(struct layout_maker *m, struct placed what)
{
    struct layout *l = what.layout;
    if (!l)
        return 0;
    if (l->bytes > INT64_MAX - m->bytes || !fits((wide)what.at + l->high) ||
        !fits((wide)what.at + l->low))
        return -EOVERFLOW;
    int data = l->kind == LAYOUT_DATA;
    int after_data = m->n && !(m->children && m->children[m->n - 1]);
    if (!(data && after_data && m->end == what.at)) {
        int rc = more_room(m, !data);
        if (rc)
            return rc;
        m->entries[m->n] = (struct layout_entry){.at = what.at, .before = m->bytes};
        if (m->children)
            m->children[m->n] = data ? NULL : layout_share(l);
        m->n++;
    }
    m->bytes += l->bytes;
    m->end = what.at + l->end;
    return 0;
}

/* Whether all entries are alike and equally far apart: then *child and *stride are set. */
static int is_row(const struct layout_maker *m, struct layout **child, int64_t *stride)
{
    wide step = (wide)m->entries[1].at - m->entries[0].at;
    uint64_t bytes = m->entries[1].before;
    *child = m->children ? m->children[0] : NULL;
    *stride = (int64_t)step;
    for (size_t i = 1; i < m->n; i++) {
        uint64_t until = i + 1 < m->n ? m->entries[i + 1].before : m->bytes;
        if ((wide)m->entries[i].at - m->entries[i - 1].at != step ||
            until - m->entries[i].before != bytes || (m->children && m->children[i] != *child))
            return 0;
    }
    return fits(step);
}

/* A list that is none: one entry, or entries in a row. 1 where it is, with *out or *rc set. */
static int make_simpler(const struct layout_maker *m, struct placed *out, int *rc)
{
    struct layout *child = m->children ? m->children[0] : NULL;
    int64_t stride = 0;
    if (m->n > 1 && !is_row(m, &child, &stride))
        return 0;
    struct placed one = {.layout = layout_share(child)};
    *rc = child ? 0 : layout_data(m->bytes / m->n, &one);
    one.at = m->entries[0].at;
    if (*rc == 0)
        *rc = layout_row(one, m->n, stride, out);
    layout_release(one.layout);
    return 1;
}

/* The hull and order of a list whose entries are relative to the first; 0 or -errno. */
static int measure_list(struct layout *list)
{
    wide low = 0, high = 0, last = 0, end = 0, reach = 0;
    uint64_t runs = 0;
    list->rising = list->apart = 1;
    for (uint64_t i = 0; i < list->count; i++) {
        const struct layout *child = layout_entry_child(list, i);
        wide at = list->entries[i].at, bytes = (wide)layout_entry_bytes(list, i);
        wide from = at + (child ? child->low : 0), to = at + (child ? child->high : bytes);
        uint64_t its = child ? child->runs : 1;
        if (child && child->depth > list->depth)
            list->depth = child->depth;
        list->rising &= (!child || child->rising) && (i == 0 || at >= last);
        list->apart &= (!child || child->apart) && (i == 0 || from >= reach);
        list->places |= (uint64_t)list->entries[i].at | (child ? child->places : (uint64_t)bytes);
        list->lengths |= child ? child->lengths : (uint64_t)bytes;
        if (i && end == at)
            its--; /* it goes on where the one before ended */
        runs = its > UINT64_MAX - runs ? UINT64_MAX : runs + its;
        last = at + (child ? child->last : 0);
        end = at + (child ? child->end : bytes);
        low = from < low ? from : low;
        high = reach = to > high ? to : high;
    }
    if (!fits(low) || !fits(high) || !fits(high - low))
        return -EOVERFLOW;
    if (list->depth++ == LAYOUT_MAX_DEPTH)
        return -ELOOP;
    list->low = (int64_t)low;
    list->high = (int64_t)high;
    list->last = (int64_t)last;
    list->end = (int64_t)end;
    list->runs = runs;
    return 0;
}

/* Takes what the maker has. */
static int make_list(struct layout_maker *m, struct placed *out)
{
    struct layout *l = malloc(sizeof *l);
    int64_t first = m->entries[0].at;
    if (!l)
        return -ENOMEM;
    struct layout_entry *less = realloc(m->entries, m->n * sizeof *less);
    *l = (struct layout){.users = 1,
                         .kind = LAYOUT_LIST,
                         .bytes = m->bytes,
                         .count = m->n,
                         .entries = less ? less : m->entries,
                         .children = m->children};
    *m = (struct layout_maker){0};
    int rc = 0;
    for (uint64_t i = 0; i < l->count; i++)
        if (__builtin_sub_overflow(l->entries[i].at, first, &l->entries[i].at))
            rc = -EOVERFLOW;
    if (rc == 0)
        rc = measure_list(l);
    if (rc)
        layout_release(l);
    else
        *out = (struct placed){.layout = l, .at = first};
    return rc;
}

int layout_finish(struct layout_maker *m, struct placed *out)
{
    int rc = 0;
    *out = (struct placed){0};
    if (m->n && !make_simpler(m, out, &rc))
        rc = make_list(m, out);
    layout_drop(m);
    return rc;
}
