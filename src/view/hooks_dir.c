/* Directories: those that the image lists completely are read from the index.
 *
 * opendir() on such a directory gives an object of ours in place of the libc's DIR. The two are
 * told apart by their first bytes: a DIR starts with its descriptor, which is never negative.
 * From a rewinddir() on that finds the directory changed, the real one's answers are passed on.
 * Functions of the libc that read directories by themselves (glob, nftw, fts) open them by
 * themselves, too, and never meet one of ours; fdopendir() gives a real one. dirfd() opens the
 * real directory when it is asked for, because what follows needs a true descriptor.
 */
#include "view/hooks.h"
#include "view/startup.h"
#include "base/text.h"

#include <stdlib.h>

#define LISTING_MARK UINT64_C(0xb216ade0d1250001)

struct listing {
    uint64_t mark[2]; /* LISTING_MARK, and its complement */
    const struct view *view;
    uint32_t dir; /* entry */
    long next;    /* position: 0 ".", 1 "..", 2 the first name */
    int fd;       /* of the real directory, or -1 */
    DIR *real;    /* in whose place it stands since it was rewound, or NULL */
    struct dirent entry;
};

static struct listing *ours(DIR *dir)
{
    struct listing *l = (struct listing *)dir;
    return l && l->mark[0] == LISTING_MARK && l->mark[1] == ~LISTING_MARK ? l : NULL;
}

static struct listing *listing_create(const struct view *v, uint32_t dir)
{
    struct listing *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    l->mark[0] = LISTING_MARK;
    l->mark[1] = ~LISTING_MARK;
    l->view = v;
    l->dir = dir;
    l->fd = -1;
    return l;
}

/* Makes l->entry the next name; NULL at the end. */
static struct dirent *listing_next(struct listing *l)
{
    const struct brg_index *x = l->view->index;
    const struct brg_entry *entries = brg_entries(x), *dir = &entries[l->dir], *e = dir;
    const char *name = l->next == 0 ? "." : "..";
    if (l->next == 1 && dir->parent != BRG_NONE)
        e = &entries[dir->parent];
    if (l->next >= 2) {
        if ((uint64_t)l->next - 2 >= dir->n_children)
            return NULL;
        e = &entries[dir->first_child + (uint32_t)(l->next - 2)];
        name = brg_string(x, e->path) + e->name_off;
    }
    struct text t = text_in(l->entry.d_name, sizeof l->entry.d_name);
    text_add(&t, name);
    l->entry.d_ino = e->ino;
    l->entry.d_type = (unsigned char)IFTODT(e->mode);
    l->entry.d_reclen = (unsigned short)((offsetof(struct dirent, d_name) + t.len + 8) & ~7u);
    l->entry.d_off = ++l->next;
    return &l->entry;
}

enum listing_answer {
    LIST_REAL,
    LIST_INDEX,
    LIST_FAILED
};

/* What to do about listing `path`. */
static enum listing_answer decide(const struct view *v, int at, const char **path,
                                  struct look_result *r)
{
    switch (look_up(v, "list", at, *path, 1, r)) {
    case LOOK_PASS: return LIST_REAL;
    case LOOK_MISSING:
        look_hit(v);
        errno = r->err;
        return LIST_FAILED;
    case LOOK_ELSEWHERE:
        look_hit(v);
        *path = r->path;
        return LIST_REAL;
    case LOOK_HIT: break;
    }
    if (r->entry->kind != BRG_DIR) {
        look_hit(v);
        errno = ENOTDIR;
        return LIST_FAILED;
    }
    if (!(r->entry->flags & (BRG_LISTED | BRG_SNAPSHOT)) || !look_permits(r->entry, R_OK)) {
        look_miss(v, BRG_MISS_DIRECTORY, "list", at, *path);
        return LIST_REAL;
    }
    if (!(r->entry->flags & BRG_LISTED) && !startup_goes_on(v)) {
        look_miss(v, BRG_MISS_LATE, "list", at, *path);
        return LIST_REAL;
    }
    look_hit(v);
    return LIST_INDEX;
}

DIR *hook_opendir(const char *path)
{
    struct look_result r;
    const struct view *v = hook_view();
    if (!v || !path)
        return REAL(opendir)(path);
    if (v->mode == VIEW_SERVE) {
        switch (decide(v, AT_FDCWD, &path, &r)) {
        case LIST_INDEX: return (DIR *)listing_create(v, r.number);
        case LIST_FAILED: return NULL;
        case LIST_REAL: break;
        }
    }
    DIR *dir = REAL(opendir)(path);
    record_lookup(v, "list", dir ? 0 : errno, AT_FDCWD, path, "");
    return dir;
}

/* The listing that answers for *dir, if one does; else *dir is the real one to ask. */
static struct listing *answering(DIR **dir)
{
    struct listing *l = ours(*dir);
    if (!l || !l->real)
        return l;
    *dir = l->real;
    return NULL;
}

struct dirent *hook_readdir(DIR *dir)
{
    struct listing *l = answering(&dir);
    return l ? listing_next(l) : REAL(readdir)(dir);
}

int hook_readdir_r(DIR *dir, struct dirent *entry, struct dirent **result)
{
    struct listing *l = answering(&dir);
    if (!l)
        return REAL(readdir_r)(dir, entry, result);
    struct dirent *next = listing_next(l);
    if (next)
        memcpy(entry, next, next->d_reclen);
    *result = next ? entry : NULL;
    return 0;
}

/* Opens the real directory for a listing that no longer answers. If it is gone, it has no names; if
 * it cannot be opened otherwise, the listing is as it was. */
static void listing_leave(struct listing *l, const char *path)
{
    l->real = l->fd < 0 ? REAL(opendir)(path) : fdopendir(l->fd);
    if (l->real && l->fd >= 0) {
        l->fd = -1; /* it is that one's now, and may have been read */
        REAL(rewinddir)(l->real);
    }
    if (!l->real && errno == ENOENT)
        l->next = 2 + (long)brg_entries(l->view->index)[l->dir].n_children;
}

/* As opendir() would decide now: the job may have changed the directory. */
void hook_rewinddir(DIR *dir)
{
    struct look_result r;
    struct listing *l = answering(&dir);
    if (!l) {
        REAL(rewinddir)(dir);
        return;
    }
    int saved = errno;
    const char *path = brg_string(l->view->index, brg_entries(l->view->index)[l->dir].path);
    l->next = 0;
    if (decide(l->view, AT_FDCWD, &path, &r) != LIST_INDEX)
        listing_leave(l, path);
    errno = saved;
}

long hook_telldir(DIR *dir)
{
    struct listing *l = answering(&dir);
    return l ? l->next : REAL(telldir)(dir);
}

void hook_seekdir(DIR *dir, long position)
{
    struct listing *l = answering(&dir);
    if (l)
        l->next = position;
    else
        REAL(seekdir)(dir, position);
}

int hook_closedir(DIR *dir)
{
    struct listing *l = ours(dir);
    if (!l)
        return REAL(closedir)(dir);
    int result = l->real ? REAL(closedir)(l->real) : 0;
    if (l->fd >= 0)
        close(l->fd);
    l->mark[0] = 0;
    free(l);
    return result;
}

int hook_dirfd(DIR *dir)
{
    struct listing *l = answering(&dir);
    if (!l)
        return REAL(dirfd)(dir);
    if (l->fd < 0) {
        const struct brg_index *x = l->view->index;
        const char *path = brg_string(x, brg_entries(x)[l->dir].path);
        look_miss(l->view, BRG_MISS_DIRECTORY, "dirfd", AT_FDCWD, path);
        l->fd = REAL(open)(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    return l->fd;
}

/* ---- scandir ---- */

static void free_list(struct dirent **list, size_t n)
{
    while (n)
        free(list[--n]);
    free(list);
}

static int scan_listing(struct listing *l, struct dirent ***list, dirent_filter *filter,
                        dirent_order *order)
{
    size_t n = 0, room = 0;
    struct dirent **found = NULL, *e;
    while ((e = listing_next(l)) != NULL) {
        if (filter && !filter(e))
            continue;
        if (n == room) {
            room = room ? room * 2 : 32;
            struct dirent **more = realloc(found, room * sizeof *more);
            if (!more) {
                free_list(found, n);
                return -1;
            }
            found = more;
        }
        found[n] = malloc(e->d_reclen);
        if (!found[n]) {
            free_list(found, n);
            return -1;
        }
        memcpy(found[n++], e, e->d_reclen);
    }
    if (n && order)
        qsort(found, n, sizeof *found, (int (*)(const void *, const void *))order);
    if (!found && !(found = malloc(sizeof *found)))
        return -1;
    *list = found;
    return (int)n;
}

#define SCAN_BODY(at, call)                                  \
    struct look_result r;                                    \
    const struct view *v = hook_view();                      \
    if (serves(v) && path) {                                 \
        struct listing l;                                    \
        switch (decide(v, at, &path, &r)) {                  \
        case LIST_INDEX:                                     \
            memset(&l, 0, sizeof l);                         \
            l.view = v;                                      \
            l.dir = r.number;                                \
            return scan_listing(&l, list, filter, order);    \
        case LIST_FAILED: return -1;                         \
        case LIST_REAL: break;                               \
        }                                                    \
    }                                                        \
    int n = call;                                            \
    if (v)                                                   \
        record_lookup(v, "list", error_of(n), at, path, ""); \
    return n

int hook_scandir(const char *path, struct dirent ***list, dirent_filter *filter,
                 dirent_order *order)
{
    SCAN_BODY(AT_FDCWD, REAL(scandir)(path, list, filter, order));
}

int hook_scandirat(int at, const char *path, struct dirent ***list, dirent_filter *filter,
                   dirent_order *order)
{
    SCAN_BODY(at, REAL(scandirat)(at, path, list, filter, order));
}

#define BRG_SECTION_DIR
#define BRG_ALIAS BRG_DEFINE_ALIAS
#include "view/hooks.def"
