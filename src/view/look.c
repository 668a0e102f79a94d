/* Answering look-ups. See look.h. */
#include "view/look.h"
#include "base/sys.h"
#include "base/text.h"
#include "view/startup.h"

#include <errno.h>
#include <unistd.h>

enum {
    MAX_GROUPS = 256
};

void look_hit(const struct view *v)
{
    __atomic_fetch_add(&v->slot->hits, 1, __ATOMIC_RELAXED);
}

static const char *cause_text(enum brg_miss_cause cause)
{
    switch (cause) {
#define BRG_X(name, text) \
    case BRG_MISS_##name: return text;
        BRG_MISS_CAUSES(BRG_X)
#undef BRG_X
    case BRG_MISS_COUNT: break;
    }
    return "";
}

__attribute__((noinline)) static void end_strictly(enum brg_miss_cause cause, const char *op,
                                                   const char *path)
{
    char message[PATH_MAX + 200];
    struct text t = text_in(message, sizeof message);
    text_add(&t, "brigade: strict: ");
    text_add(&t, op);
    text_add(&t, " ");
    text_add(&t, path);
    text_add(&t, ": ");
    text_add(&t, cause_text(cause));
    text_add(&t, "\n");
    sys_write(2, message, t.len);
    sys_exit(125);
}

static void log_miss(const struct view *v, enum brg_miss_cause cause, const char *op,
                     const char *path)
{
    struct brg_state *s = v->state;
    __atomic_fetch_add(&v->slot->misses[cause], 1, __ATOMIC_RELAXED);
    if (__atomic_load_n(&s->next_miss, __ATOMIC_RELAXED) < s->n_misses) {
        uint32_t at = __atomic_fetch_add(&s->next_miss, 1, __ATOMIC_RELAXED);
        if (at < s->n_misses) {
            struct brg_miss *m = &brg_state_misses(s)[at];
            size_t len = strlen(path), op_len = strlen(op);
            size_t room = sizeof m->path - 1, skip = len > room ? len - room : 0;
            memcpy(m->path, path + skip, len - skip);
            memcpy(m->op, op, op_len < sizeof m->op ? op_len : sizeof m->op - 1);
            m->len = (uint16_t)len;
            m->cause = (uint8_t)cause;
        }
    }
    if (v->strict &&
        (cause == BRG_MISS_UNKNOWN || cause == BRG_MISS_NO_CONTENT || cause == BRG_MISS_STAGE))
        end_strictly(cause, op, path);
}

__attribute__((noinline)) static void log_relative(const struct view *v, enum brg_miss_cause cause,
                                                   const char *op, int dirfd, const char *path)
{
    char absolute[LOOK_ROOM];
    if (view_absolute(v, dirfd, path, absolute, sizeof absolute) == 0)
        path = absolute;
    log_miss(v, cause, op, path);
}

void look_miss(const struct view *v, enum brg_miss_cause cause, const char *op, int dirfd,
               const char *path)
{
    if (path[0] == '/')
        log_miss(v, cause, op, path);
    else
        log_relative(v, cause, op, dirfd, path);
}

static int is_dirty(const struct view *v, uint32_t entry)
{
    if (entry == BRG_NONE)
        return 0;
    uint64_t word = __atomic_load_n(&brg_state_dirty(v->state)[entry / 64], __ATOMIC_RELAXED);
    return (int)(word >> (entry % 64)) & 1;
}

int look_may_lead(const struct view *v, const char *path)
{
    size_t n = 0;
    if (v->away)
        return 0;
    if (v->n_firsts < 0)
        return 1;
    if (path[1] == '/' || path[1] == '.')
        return 1;
    path++;
    while (path[n] && path[n] != '/')
        n++;
    for (int i = 0; i < v->n_firsts; i++)
        if (v->firsts[i].len == n + 1 &&
            memcmp(brg_string(v->index, v->firsts[i]) + 1, path, n) == 0)
            return 1;
    return 0;
}

/* Whether the job has changed what was found; `found` is BRG_EXISTS or BRG_MISSING. */
static int is_changed(const struct view *v, const char *path, int found, uint32_t number)
{
    const struct brg_index *x = v->index;
    const struct brg_entry *e = &brg_entries(x)[number];
    uint64_t any = __atomic_load_n(&v->state->dirty_any, __ATOMIC_RELAXED);
    if (!any)
        return 0;
    if (is_dirty(v, number) || (found == BRG_MISSING && is_dirty(v, e->parent)))
        return 1;
    if ((any & LOOK_UNSEEN) && !brg_entry_lasts(x, e))
        return 1;
    /* after a link or a directory has moved, only a path without links in it is certain */
    return (any & LOOK_MOVED) && !text_starts(path, brg_string(x, e->path));
}

/* Whether the link that leads elsewhere may lead to another place by now. */
static enum brg_miss_cause link_cause(const struct view *v, uint32_t link)
{
    uint64_t any = __atomic_load_n(&v->state->dirty_any, __ATOMIC_RELAXED);
    if (any & (LOOK_MOVED | (link != BRG_NONE ? LOOK_UNSEEN : 0)))
        return BRG_MISS_CHANGED;
    return link != BRG_NONE && !startup_goes_on(v) ? BRG_MISS_LATE : BRG_MISS_COUNT;
}

/* `number`: what brg_index_resolve() said of a path that it could not tell. */
static enum brg_miss_cause unknown_cause(uint32_t number, const char *path)
{
    return number != BRG_NONE || text_longest(path, '/') > NAME_MAX ? BRG_MISS_UNSUPPORTED
                                                                    : BRG_MISS_UNKNOWN;
}

static enum look look_absolute(const struct view *v, const char *op, const char *path, int follow,
                               struct look_result *r)
{
    enum brg_miss_cause why;
    if (!look_may_lead(v, path))
        return LOOK_PASS;
    int found =
        brg_index_resolve(v->index, path, follow, &r->number, &r->err, r->path, sizeof r->path);
    switch (found) {
    case BRG_EXISTS:
    case BRG_MISSING:
        if (is_changed(v, path, found, r->number)) {
            log_miss(v, BRG_MISS_CHANGED, op, path);
            return LOOK_PASS;
        }
        r->entry = &brg_entries(v->index)[r->number];
        if (brg_entry_lasts(v->index, r->entry))
            startup_note(v);
        else if (!startup_goes_on(v)) {
            log_miss(v, BRG_MISS_LATE, op, path);
            return LOOK_PASS;
        }
        return found == BRG_EXISTS ? LOOK_HIT : LOOK_MISSING;
    case BRG_UNKNOWN: log_miss(v, unknown_cause(r->number, path), op, path); return LOOK_PASS;
    default: /* outside */
        if (!r->path[0] || text_same(r->path, path))
            return LOOK_PASS;
        why = link_cause(v, r->number);
        if (why != BRG_MISS_COUNT)
            log_miss(v, why, op, path);
        return why != BRG_MISS_COUNT ? LOOK_PASS : LOOK_ELSEWHERE;
    }
}

__attribute__((noinline)) static enum look look_relative(const struct view *v, const char *op,
                                                         int dirfd, const char *path, int follow,
                                                         struct look_result *r)
{
    char absolute[LOOK_ROOM];
    if (view_absolute(v, dirfd, path, absolute, sizeof absolute) != 0)
        return LOOK_PASS;
    return look_absolute(v, op, absolute, follow, r);
}

enum look look_up(const struct view *v, const char *op, int dirfd, const char *path, int follow,
                  struct look_result *r)
{
    if (path[0] == '/')
        return look_absolute(v, op, path, follow, r);
    return path[0] ? look_relative(v, op, dirfd, path, follow, r) : LOOK_PASS;
}

const char *look_staged(const struct view *v, struct look_result *r)
{
    if (!(r->entry->flags & BRG_HAS_CONTENT))
        return NULL;
    struct text t = text_in(r->path, sizeof r->path);
    text_bytes(&t, v->root, v->root_len);
    text_bytes(&t, brg_string(v->index, r->entry->path), r->entry->path.len);
    return t.full ? NULL : r->path;
}

static int is_covered(const struct view *v, const char *path, int follow)
{
    char room[LOOK_ROOM];
    uint32_t number;
    int err;
    return look_may_lead(v, path) && brg_index_resolve(v->index, path, follow, &number, &err, room,
                                                       sizeof room) != BRG_OUTSIDE;
}

int look_covers(const struct view *v, int dirfd, const char *path, int follow)
{
    char absolute[LOOK_ROOM];
    if (path[0] == '/')
        return is_covered(v, path, follow);
    return view_absolute(v, dirfd, path, absolute, sizeof absolute) == 0 &&
           is_covered(v, absolute, follow);
}

struct timespec look_time(int64_t ns)
{
    struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    if (t.tv_nsec < 0) {
        t.tv_sec--;
        t.tv_nsec += 1000000000;
    }
    return t;
}

/* What is mounted is numbered as each node likes, and fstat of what is not staged says so. */
static uint64_t device_here(const struct brg_state *s, const struct brg_entry *e)
{
    for (uint32_t i = 0; (e->flags & BRG_MOUNT_DEV) && i < s->n_devices; i++)
        if (s->devices[i].image == e->dev)
            return s->devices[i].here;
    return e->dev;
}

void look_stat(const struct view *v, const struct brg_entry *e, struct stat *st)
{
    memset(st, 0, sizeof *st);
    st->st_dev = device_here(v->state, e);
    st->st_ino = e->ino;
    st->st_mode = e->mode;
    st->st_nlink = e->nlink;
    st->st_uid = e->uid;
    st->st_gid = e->gid;
    st->st_rdev = e->rdev;
    st->st_size = (off_t)e->size;
    st->st_blksize = (blksize_t)e->blksize;
    st->st_blocks = (blkcnt_t)e->blocks;
    st->st_atim = look_time(e->atime_ns);
    st->st_mtim = look_time(e->mtime_ns);
    st->st_ctim = look_time(e->ctime_ns);
}

static int in_groups(uint32_t gid)
{
    uint32_t groups[MAX_GROUPS];
    if ((uint32_t)sys_call(SYS_getegid, 0, 0, 0, 0, 0, 0) == gid)
        return 1;
    long n = sys_call(SYS_getgroups, MAX_GROUPS, (long)groups, 0, 0, 0, 0);
    for (long i = 0; i < n; i++)
        if (groups[i] == gid)
            return 1;
    return 0;
}

int look_permits_anyone(const struct brg_entry *e, int mode)
{
    uint32_t want = (uint32_t)mode & (R_OK | X_OK);
    uint32_t common = (e->mode >> 6) & (e->mode >> 3) & e->mode;
    return !(mode & ~(R_OK | X_OK)) && (common & want) == want;
}

int look_permits(const struct brg_entry *e, int mode)
{
    if (look_permits_anyone(e, mode))
        return 1;
    uint32_t uid = (uint32_t)sys_call(SYS_geteuid, 0, 0, 0, 0, 0, 0);
    uint32_t want = (uint32_t)mode & (R_OK | X_OK), bits = e->mode & 7;
    if (mode & ~(R_OK | X_OK))
        return 0;
    if (uid == 0)
        return !(want & X_OK) || e->kind == BRG_DIR || (e->mode & 0111);
    if (e->uid == uid)
        bits = (e->mode >> 6) & 7;
    else if ((bits & want) != want || ((e->mode >> 3) & 7) != bits)
        bits = in_groups(e->gid) ? (e->mode >> 3) & 7 : bits;
    return (bits & want) == want;
}
