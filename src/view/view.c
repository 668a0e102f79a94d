/* Starting a view: environment, staged folder, shared state. See view.h. */
#include "view/view.h"
#include "view/record.h"
#include "view/startup.h"
#include "base/sys.h"
#include "base/text.h"

#include <errno.h>

enum {
    ENV_ROOM = 4 << 20
};

/* ld.so before glibc 2.39 ends each part of GLIBC_TUNABLES by a NUL where the kernel shows it, and
 * gives libc a copy; what follows would be variables of their own, named glibc.something. */
static void join_tunables(char *env, const char *end)
{
    char *p = env;
    while (p < end && !text_starts(p, "GLIBC_TUNABLES="))
        p += strlen(p) + 1;
    for (; p < end; p += strlen(p)) {
        char *next = p + strlen(p) + 1;
        if (next >= end || !text_starts(next, "glibc."))
            return;
        next[-1] = ':';
    }
}

/* /proc/self/environ and not `environ`: what LD_LIBRARY_PATH was at the start decides ld.so's
 * searches, whatever the program sets later; and an auditor has no libc to ask. */
static void read_env(struct view *v)
{
    int fd = sys_open("/proc/self/environ", O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return;
    char *room =
        sys_map(ENV_ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    size_t len = 0;
    long n = 1;
    while (room && n > 0 && len < ENV_ROOM - 2) {
        n = sys_read(fd, room + len, ENV_ROOM - 2 - len);
        len += n > 0 ? (size_t)n : 0;
    }
    sys_close(fd);
    if (!room)
        return;
    size_t used = (len + 2 + 4095) & ~(size_t)4095;
    if (used < ENV_ROOM)
        sys_unmap(room + used, ENV_ROOM - used);
    join_tunables(room, room + len);
    v->env = room;
    v->env_bytes = len;
}

const char *view_entry_in(const char *env, size_t bytes, const char *name, size_t n)
{
    for (const char *p = env; p && p < env + bytes; p += strlen(p) + 1) {
        size_t same = 0;
        while (same < n && p[same] == name[same])
            same++;
        if (same == n && p[n] == '=')
            return p;
    }
    return NULL;
}

const char *view_env_entry(const struct view *v, const char *name)
{
    return view_entry_in(v->env, v->env_bytes, name, strlen(name));
}

const char *view_env(const struct view *v, const char *name)
{
    const char *entry = view_env_entry(v, name);
    return entry ? entry + strlen(name) + 1 : NULL;
}

const char *view_original(const struct view *v, const char *path)
{
    if (v->root_len && memcmp(path, v->root, 1) == 0 && text_starts(path, v->root) &&
        path[v->root_len] == '/')
        return path + v->root_len;
    return path;
}

long view_fd_path(const struct view *v, int fd, char *buf, size_t size, int *staged)
{
    char name[40];
    struct text t = text_in(name, sizeof name);
    if (fd < 0)
        return -EBADF;
    text_add(&t, "/proc/self/fd/");
    text_number(&t, (uint64_t)fd, 10);
    long n = sys_readlink(name, buf, size - 1);
    if (n < 0)
        return n;
    buf[n] = '\0';
    if ((size_t)n == size - 1) /* it may have been cut */
        return -ENAMETOOLONG;
    static const char deleted[] = " (deleted)";
    size_t tail = sizeof deleted - 1;
    if (buf[0] != '/' || ((size_t)n > tail && memcmp(buf + n - tail, deleted, tail) == 0))
        return -ENOENT;
    const char *original = view_original(v, buf);
    *staged = original != buf;
    n -= original - buf;
    memmove(buf, original, (size_t)n + 1);
    return n;
}

long view_end_path(const struct view *v, int dirfd, const char *path, char *buf, size_t size,
                   int *staged)
{
    int fd = sys_openat(dirfd, path, O_PATH | O_CLOEXEC);
    long n = fd < 0 ? fd : view_fd_path(v, fd, buf, size, staged);
    if (fd >= 0)
        sys_close(fd);
    return n;
}

int view_absolute(const struct view *v, int dirfd, const char *path, char *buf, size_t size)
{
    long n;
    int staged = 0;
    struct text t;
    if (path[0] == '/') {
        t = text_in(buf, size);
        text_add(&t, path);
        return t.full ? -ENAMETOOLONG : 0;
    }
    if (dirfd == AT_FDCWD) {
        n = sys_getcwd(buf, size) - 1;
        if (n >= 0 && buf[0] != '/') /* "(unreachable)" */
            return -ENOENT;
    } else {
        n = view_fd_path(v, dirfd, buf, size, &staged);
        if (n >= 0 && staged) /* the program itself went into the staged tree: leave it there */
            return -ENOENT;
    }
    if (n < 0)
        return (int)n;
    t.at = buf;
    t.len = (size_t)n;
    t.size = size;
    t.full = 0;
    if (path[0] && n > 1)
        text_add(&t, "/");
    text_add(&t, path);
    return t.full ? -ENAMETOOLONG : 0;
}

/* Only what this user staged is believed: not a folder that somebody else has put in its place. */
static int is_ours(const struct stat *st)
{
    return st->st_uid == (uint32_t)sys_call(SYS_geteuid, 0, 0, 0, 0, 0, 0) && !(st->st_mode & 022);
}

static void *map_file(const char *path, int flags, int prot, size_t *bytes, uint64_t *dev)
{
    struct stat st;
    void *at = NULL;
    int fd = sys_open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0);
    if (fd < 0)
        return NULL;
    if (sys_fstat(fd, &st) == 0 && is_ours(&st) && st.st_size > 0) {
        *bytes = (size_t)st.st_size;
        *dev = st.st_dev;
        at = sys_map(*bytes, prot, MAP_SHARED, fd);
    }
    sys_close(fd);
    return at;
}

/* The stager has verified every byte; here only that the two files belong together. */
static int files_fit(const struct brg_index *x, size_t x_bytes, const struct brg_state *s,
                     size_t s_bytes)
{
    return x_bytes >= sizeof *x && x->magic == BRG_INDEX_MAGIC && x->version == BRG_INDEX_VERSION &&
           x->bytes == x_bytes && s_bytes >= sizeof *s && s->magic == BRG_STATE_MAGIC &&
           s->version == BRG_STATE_VERSION && s->bytes <= s_bytes && s->n_entries == x->n_entries &&
           s->n_slots > 0;
}

static void add_first(struct view *v, struct brg_str path)
{
    const char *text = brg_string(v->index, path);
    uint32_t n = 1;
    while (n < path.len && text[n] != '/')
        n++;
    if (n == 1 || v->n_firsts < 0) {
        v->n_firsts = -1; /* "/" itself is covered: every path may be */
        return;
    }
    for (int i = 0; i < v->n_firsts; i++)
        if (v->firsts[i].len == n && memcmp(brg_string(v->index, v->firsts[i]), text, n) == 0)
            return;
    if (v->n_firsts == VIEW_FIRSTS) {
        v->n_firsts = -1;
        return;
    }
    v->firsts[v->n_firsts].off = path.off;
    v->firsts[v->n_firsts++].len = n;
}

/* A path can lead under a root only through a root's own first component or through something
 * that the index knows directly below "/" (links on local disks that lead there). */
static void find_firsts(struct view *v)
{
    const struct brg_index *x = v->index;
    const struct brg_str *roots = (const struct brg_str *)((const char *)x + x->roots_off);
    for (uint32_t i = 0; i < x->n_roots; i++)
        add_first(v, roots[i]);
    uint32_t top = brg_index_find(x, "/", 1);
    const struct brg_entry *entries = brg_entries(x);
    for (uint32_t i = 0; top != BRG_NONE && i < entries[top].n_children; i++)
        add_first(v, entries[entries[top].first_child + i].path);
}

int view_open_stage(struct view *v, const char *stage, const char *state, uint32_t slot)
{
    char path[PATH_MAX];
    struct text t = text_in(path, sizeof path);
    size_t x_bytes = 0, s_bytes = 0;
    uint64_t state_dev;
    text_add(&t, stage);
    text_add(&t, "/index");
    if (t.full || stage[0] != '/')
        return -EINVAL;
    void *x = map_file(path, O_RDONLY, PROT_READ, &x_bytes, &v->stage_dev);
    void *s = x ? map_file(state, O_RDWR, PROT_READ | PROT_WRITE, &s_bytes, &state_dev) : NULL;
    if (!s || !files_fit(x, x_bytes, s, s_bytes)) {
        if (x)
            sys_unmap(x, x_bytes);
        if (s)
            sys_unmap(s, s_bytes);
        return -ENOENT;
    }
    v->index = x;
    v->state = s;
    v->slot = brg_state_slot(s, slot);
    t = text_in(v->root, sizeof v->root);
    text_add(&t, stage);
    text_add(&t, "/root");
    v->root_len = t.len;
    find_firsts(v);
    startup_begin(v);
    v->mode = VIEW_SERVE;
    return 0;
}

int view_is_away(const struct view *v)
{
    return v->away || root_is_away(view_env(v, BRG_ROOT_VARIABLE));
}

void view_note_away(const struct view *v)
{
    if (v->state)
        __atomic_fetch_add(&v->state->away, 1, __ATOMIC_RELAXED);
}

void view_read_process(struct view *v)
{
    v->bytes = sizeof *v;
    if (!v->env)
        read_env(v);
    long n = sys_readlink("/proc/self/exe", v->exe, sizeof v->exe - 1);
    v->exe[n > 0 ? n : 0] = '\0';
}

static int list_has(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (; list && *list; list++) {
        if (text_starts(list, word) && (list[n] == ',' || list[n] == '\0'))
            return 1;
        while (*list && *list != ',')
            list++;
        if (!*list)
            break;
    }
    return 0;
}

void view_start(struct view *v)
{
    v->mode = VIEW_OFF;
    view_read_process(v);
    const char *stage = view_env(v, "BRIGADE_STAGE"), *folder = view_env(v, "BRIGADE_RECORD");
    const char *state = view_env(v, "BRIGADE_STATE"), *strict = view_env(v, "BRIGADE_STRICT");
    v->strict = strict && text_same(strict, "1");
    v->python = list_has(view_env(v, "BRIGADE_VIEW"), "python");
    v->away = view_is_away(v);
    if (stage && state) {
        uint32_t slot = (uint32_t)text_to_number(view_env(v, "BRIGADE_SLOT"), 0);
        if (view_open_stage(v, stage, state, slot) == 0 && !v->away)
            __atomic_fetch_add(&v->slot->processes, 1, __ATOMIC_RELAXED);
    }
    if (v->away) {
        view_note_away(v);
        v->mode = VIEW_OFF;
    } else if (v->mode == VIEW_SERVE) {
        const char *original = view_original(v, v->exe);
        memmove(v->exe, original, strlen(original) + 1);
        const char *libraries = view_env(v, "LD_LIBRARY_PATH");
        v->context = brg_search_context(v->exe, libraries ? libraries : "");
    } else if (folder && folder[0] == '/') {
        record_start(v, folder);
    }
}
