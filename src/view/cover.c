/* Planning covers. See cover.h. Parents stand before their children in an index, so that one pass
 * down decides what is inside what, and one pass up what is complete. */
#include "view/cover.h"

#include <string.h>

/* Whether `path` is `folder` or below it. */
static int is_in(const char *path, const char *folder, size_t n)
{
    return strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static int is_dirty(const uint64_t *dirty, uint32_t i)
{
    return (int)(dirty[i / 64] >> (i % 64)) & 1;
}

/* A folder of software below none that the job does not work in. */
static int is_top(const struct brg_index *x, const struct brg_entry *e, const char *cwd)
{
    return e->kind == BRG_DIR && (e->flags & BRG_LISTED) && (e->flags & BRG_COVERED) &&
           e->path.len > 1 && !is_in(cwd, brg_string(x, e->path), e->path.len);
}

/* The cover that entry `i` lies in, or BRG_NONE. */
static uint32_t top_of(const struct brg_index *x, const uint8_t *marks, uint32_t i)
{
    const struct brg_entry *entries = brg_entries(x);
    if (!(marks[i] & COVER_INSIDE))
        return BRG_NONE;
    while (i != BRG_NONE && !(marks[i] & COVER_TOP))
        i = entries[i].parent;
    return i;
}

/* Places tops, holes and what is inside. */
static uint32_t mark_down(const struct brg_index *x, const char *cwd, uint8_t *marks)
{
    const struct brg_entry *entries = brg_entries(x);
    uint32_t covers = 0, holes = 0;
    for (uint32_t i = 0; i < x->n_entries; i++) {
        const struct brg_entry *e = &entries[i];
        int inside = e->parent != BRG_NONE && (marks[e->parent] & COVER_INSIDE);
        marks[i] &= COVER_SPOILT;
        if (inside && e->kind == BRG_DIR && !(e->flags & BRG_LISTED) && e->order != BRG_NONE &&
            holes < COVER_HOLES) {
            marks[i] |= COVER_HOLE;
            holes++;
        } else if (inside) {
            marks[i] |= COVER_INSIDE;
        } else if (covers < COVER_MOST && !marks[i] && is_top(x, e, cwd)) {
            marks[i] = COVER_INSIDE | COVER_TOP;
            covers++;
        }
    }
    return covers;
}

/* Names the covers in which something has changed; returns whether there is one. */
static int spoil(const struct brg_index *x, const uint64_t *dirty, uint8_t *marks)
{
    int any = 0;
    for (uint32_t i = 0; i < x->n_entries; i++) {
        uint32_t top = is_dirty(dirty, i) ? top_of(x, marks, i) : BRG_NONE;
        if (top == BRG_NONE)
            continue;
        marks[top] |= COVER_SPOILT;
        any = 1;
    }
    return any;
}

/* Whether a cover's own layer must have what the staged tree has not: links as they were, absences,
 * folders in which nothing is staged. */
static int needs_layer(const struct brg_entry *e, uint8_t mark)
{
    return e->kind == BRG_SYMLINK || e->kind == BRG_ABSENT || (mark & COVER_MADE);
}

static int is_staged(const struct brg_entry *e)
{
    switch (e->kind) {
    case BRG_FILE: return e->flags & BRG_HAS_CONTENT;
    case BRG_DIR: return e->flags & BRG_LISTED;
    default: return e->kind == BRG_SYMLINK || e->kind == BRG_ABSENT;
    }
}

static void mark_up(const struct brg_index *x, uint8_t *marks)
{
    const struct brg_entry *entries = brg_entries(x);
    for (uint32_t i = 0; i < x->n_entries; i++)
        if (is_staged(&entries[i]) && (marks[i] & COVER_INSIDE))
            marks[i] |= COVER_COMPLETE;
    for (uint32_t i = x->n_entries; i-- > 0;) {
        const struct brg_entry *e = &entries[i];
        if ((marks[i] & COVER_TOP) || (e->kind == BRG_DIR && (marks[i] & COVER_COMPLETE)))
            marks[i] |= COVER_MADE;
        if (e->parent == BRG_NONE || !(marks[e->parent] & COVER_INSIDE))
            continue;
        if (!(marks[i] & COVER_COMPLETE))
            marks[e->parent] &= (uint8_t)~COVER_COMPLETE;
        if (needs_layer(e, marks[i]))
            marks[e->parent] |= COVER_MADE;
    }
}

uint32_t cover_plan(const struct brg_index *x, const uint64_t *dirty, const char *cwd,
                    uint8_t *marks)
{
    memset(marks, 0, x->n_entries);
    uint32_t covers = mark_down(x, cwd, marks);
    while (spoil(x, dirty, marks))
        covers = mark_down(x, cwd, marks);
    mark_up(x, marks);
    return covers;
}
