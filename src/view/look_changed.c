/* Noting what the job changes. See look.h.
 *
 * Each call has room for one path or two, and those that seldom need a long one are not inlined: a
 * signal handler may open a file for writing on a stack of 8 KiB.
 */
#include "view/look.h"
#include "base/text.h"

#include <errno.h>

static void set_dirty(const struct view *v, uint32_t entry)
{
    if (entry != BRG_NONE)
        __atomic_fetch_or(&brg_state_dirty(v->state)[entry / 64], UINT64_C(1) << (entry % 64),
                          __ATOMIC_RELAXED);
}

void look_unseen(const struct view *v)
{
    __atomic_fetch_or(&v->state->dirty_any, LOOK_UNSEEN, __ATOMIC_RELAXED);
}

static int is_below(const struct brg_index *x, const struct brg_entry *e, struct brg_str dir)
{
    return e->path.len > dir.len && brg_string(x, e->path)[dir.len] == '/' &&
           memcmp(brg_string(x, e->path), brg_string(x, dir), dir.len) == 0;
}

static void mark_entry(const struct view *v, uint32_t number)
{
    const struct brg_index *x = v->index;
    const struct brg_entry *entries = brg_entries(x), *e = &entries[number];
    uint64_t how = LOOK_CHANGED;
    set_dirty(v, number);
    set_dirty(v, e->parent);
    if (e->kind == BRG_SYMLINK)
        how |= LOOK_MOVED;
    if (e->kind == BRG_DIR || e->kind == BRG_ABSENT) {
        /* a tree may have come, moved or gone as a whole: nothing below it is certain */
        how |= e->kind == BRG_DIR ? LOOK_MOVED : 0;
        for (uint32_t i = 0; i < x->n_entries; i++)
            if (is_below(x, &entries[i], e->path))
                set_dirty(v, i);
    }
    __atomic_fetch_or(&v->state->dirty_any, how, __ATOMIC_RELAXED);
}

/* Marks what `path` leads to, and returns what the index says of it. `room` is empty afterwards if
 * it was too small to tell. */
static enum brg_found mark_in(const struct view *v, const char *path, int follow, char *room,
                              size_t size)
{
    uint32_t number;
    int err;
    size_t n;
    enum brg_found found = brg_index_resolve(v->index, path, follow, &number, &err, room, size);
    switch (found) {
    case BRG_EXISTS: mark_entry(v, number); return found;
    case BRG_MISSING:
        if (brg_entries(v->index)[number].kind == BRG_ABSENT) {
            mark_entry(v, number);
            return found;
        }
        set_dirty(v, number); /* a new name in a listed directory */
        break;
    case BRG_UNKNOWN:
        n = strlen(room);
        while (n > 0 && room[n - 1] != '/')
            n--;
        if (n < 2)
            return found;
        set_dirty(v, brg_index_find(v->index, room, n - 1));
        break;
    default: /* a link, or a folder on the way to a covered root: where those lead, may change */
        number = brg_index_find(v->index, room, strlen(room));
        if (number != BRG_NONE)
            mark_entry(v, number);
        return found;
    }
    __atomic_fetch_or(&v->state->dirty_any, LOOK_CHANGED, __ATOMIC_RELAXED);
    return found;
}

__attribute__((noinline)) static enum brg_found mark_long(const struct view *v, const char *path,
                                                          int follow)
{
    char room[PATH_MAX];
    return mark_in(v, path, follow, room, sizeof room);
}

/* Returns whether that lies under a covered root. */
__attribute__((noinline)) static int mark_absolute(const struct view *v, const char *path,
                                                   int follow)
{
    char room[LOOK_ROOM];
    enum brg_found found = mark_in(v, path, follow, room, sizeof room);
    if (found == BRG_UNKNOWN && !room[0])
        found = mark_long(v, path, follow);
    return found != BRG_OUTSIDE;
}

void look_changed(const struct view *v, int dirfd, const char *path, int follow)
{
    char absolute[PATH_MAX];
    if (view_absolute(v, dirfd, path, absolute, sizeof absolute) == 0)
        mark_absolute(v, absolute, follow);
}

/* `n`: what view_fd_path() said. */
static int mark_found(const struct view *v, long n, const char *path)
{
    return n >= 0 && look_may_lead(v, path) && mark_absolute(v, path, 0);
}

__attribute__((noinline)) static int mark_long_fd(const struct view *v, int fd)
{
    char path[PATH_MAX];
    int staged;
    return mark_found(v, view_fd_path(v, fd, path, sizeof path, &staged), path);
}

int look_changed_fd(const struct view *v, int fd)
{
    char path[LOOK_ROOM];
    int staged;
    long n = view_fd_path(v, fd, path, sizeof path, &staged);
    return n == -ENAMETOOLONG ? mark_long_fd(v, fd) : mark_found(v, n, path);
}
