/* Answering look-ups. See look.h. */
#include "view/look.h"
#include "base/sys.h"
#include "base/text.h"

#include <errno.h>
#include <unistd.h>

/* The start-up counts as over when this long has passed since software was last looked up: of the
 * process's own time, because on a crowded node it may wait long for its turn; or of the clock's,
 * because a program that sleeps has started, too. */
#define STARTUP_CPU_NS UINT64_C(2000000000)
#define STARTUP_WALL_NS UINT64_C(30000000000)

enum {
    MAX_GROUPS = 256
};

#ifdef BRG_FREESTANDING
static uint64_t coarse_now_ns(void)
{
    return sys_now_ns(CLOCK_REALTIME_COARSE);
}
#else
static uint64_t coarse_now_ns(void) /* without entering the kernel */
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
#endif

/* Whether the process is still starting up, at `now`. A tick of the clock in which nothing was
 * looked up is what makes it ask for the process's own time. */
static int is_starting(const struct view *v, uint64_t now)
{
    struct view *own = (struct view *)v; /* its clock: any thread may write it, all write sense */
    if (v->startup_over)
        return 0;
    uint64_t last = v->last_software_ns;
    if (!last || now < last + 100000000u)
        return 1;
    uint64_t cpu = sys_now_ns(CLOCK_PROCESS_CPUTIME_ID);
    if (now > last + STARTUP_WALL_NS || cpu > v->last_software_cpu_ns + STARTUP_CPU_NS)
        own->startup_over = 1; /* only ever 0 -> 1 */
    return !v->startup_over;
}

int look_starting(const struct view *v)
{
    return is_starting(v, coarse_now_ns());
}

/* Notes that software was looked up. */
static void note_software(const struct view *v, uint64_t now)
{
    struct view *own = (struct view *)v;
    if (!is_starting(v, now))
        return;
    if (now > v->last_software_ns + 100000000u)
        own->last_software_cpu_ns = sys_now_ns(CLOCK_PROCESS_CPUTIME_ID);
    own->last_software_ns = now;
    if (now != __atomic_load_n(&v->slot->last_load_ns, __ATOMIC_RELAXED))
        __atomic_store_n(&v->slot->last_load_ns, now, __ATOMIC_RELAXED);
}

void look_hit(const struct view *v)
{
    __atomic_fetch_add(&v->slot->hits, 1, __ATOMIC_RELAXED);
}

/* What the image says about installed software lasts: a directory whose names are known, and what
 * lies in one. The rest is the user's own and may change while the job runs. */
static int lasts(const struct brg_index *x, const struct brg_entry *e)
{
    const struct brg_entry *entries = brg_entries(x);
    return (e->flags & BRG_LISTED) || !(e->flags & BRG_COVERED) ||
           (e->parent != BRG_NONE && (entries[e->parent].flags & BRG_LISTED));
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
    /* after a link or a directory has moved, only a path without links in it is certain */
    return (any & LOOK_MOVED) && !text_starts(path, brg_string(x, e->path));
}

static enum look look_absolute(const struct view *v, const char *op, const char *path, int follow,
                               struct look_result *r)
{
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
        uint64_t now = coarse_now_ns();
        if (lasts(v->index, r->entry))
            note_software(v, now);
        else if (!is_starting(v, now)) {
            log_miss(v, BRG_MISS_LATE, op, path);
            return LOOK_PASS;
        }
        return found == BRG_EXISTS ? LOOK_HIT : LOOK_MISSING;
    case BRG_UNKNOWN: log_miss(v, BRG_MISS_UNKNOWN, op, path); return LOOK_PASS;
    default: /* outside */
        if (!r->path[0] || text_same(r->path, path) ||
            (__atomic_load_n(&v->state->dirty_any, __ATOMIC_RELAXED) & LOOK_MOVED))
            return LOOK_PASS;
        return LOOK_ELSEWHERE;
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
