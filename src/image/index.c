/* Looking paths and ld.so's answers up in an index.
 *
 * A canonical path is one hash and one probe. Any other path is walked as the kernel walks it:
 * the directory reached so far stands at the front of one buffer, what remains stands in the
 * caller's string, in the index, or (after a link in the middle of a path) at the buffer's end.
 * FNV-1a can be continued, so each step hashes only the new component.
 *
 * What must stay true: no libc beyond memcpy, memcmp and strlen (the ld.so auditor compiles
 * this file), no thread-local or static data, no answer that the kernel would not give. When in
 * doubt the answer is BRG_UNKNOWN.
 */
#include "image/index.h"

#include <errno.h>
#include <string.h>

enum {
    MAX_PATH = 4096, /* PATH_MAX: the kernel refuses longer ones */
    MAX_NAME = 255,  /* NAME_MAX */
    MAX_LINKS = 40,  /* MAXSYMLINKS: the 41st gives ELOOP */
    ROOM = MAX_PATH + 256,
    LITTLE = 1024 /* a caller's buffer that is smaller is no room to walk in */
};

struct walk {
    const struct brg_index *x;
    const char *rest; /* what remains; NUL-terminated */
    int rest_in_room; /* rest lies in room and must not be overwritten */
    uint32_t at;      /* entry of the directory reached, BRG_NONE if it has none */
    uint64_t hash;    /* of what room starts with, len bytes */
    size_t len;       /* of the directory reached; 0 for "/" */
    int links;
    uint32_t link; /* the first of them that need not last, or BRG_NONE */
    char *room;
    size_t size;
};

uint64_t brg_hash(const void *bytes, size_t n, uint64_t seed)
{
    const unsigned char *p = bytes;
    uint64_t h = seed;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * UINT64_C(0x100000001b3);
    return h;
}

uint64_t brg_search_context(const char *exe, const char *ld_library_path)
{
    uint64_t h = brg_hash(exe, strlen(exe) + 1, BRG_HASH_SEED);
    return brg_hash(ld_library_path, strlen(ld_library_path), h);
}

uint64_t brg_answer_hash(uint64_t context, const char *requester, const char *name)
{
    uint64_t h = brg_hash(&context, sizeof context, BRG_HASH_SEED);
    h = brg_hash(requester, strlen(requester) + 1, h);
    return brg_hash(name, strlen(name), h);
}

static int string_is(const struct brg_index *x, struct brg_str s, const char *text, size_t len)
{
    return s.len == len && memcmp(brg_string(x, s), text, len) == 0;
}

static uint32_t find_hashed(const struct brg_index *x, const char *path, size_t len, uint64_t hash)
{
    const uint32_t *buckets = (const uint32_t *)((const char *)x + x->buckets_off);
    const struct brg_entry *entries = brg_entries(x);
    uint32_t mask = x->n_buckets - 1;
    for (uint32_t i = 0; i < x->n_buckets; i++) {
        uint32_t e = buckets[((uint32_t)hash + i) & mask];
        if (e == BRG_NONE || string_is(x, entries[e].path, path, len))
            return e;
    }
    return BRG_NONE;
}

uint32_t brg_index_find(const struct brg_index *x, const char *path, size_t len)
{
    return find_hashed(x, path, len, brg_hash(path, len, BRG_HASH_SEED));
}

const struct brg_answer *brg_index_answer(const struct brg_index *x, uint64_t context,
                                          const char *requester, const char *name)
{
    const uint32_t *buckets = (const uint32_t *)((const char *)x + x->abuckets_off);
    const struct brg_answer *answers =
        (const struct brg_answer *)((const char *)x + x->answers_off);
    uint32_t hash = (uint32_t)brg_answer_hash(context, requester, name);
    size_t requester_len = strlen(requester), name_len = strlen(name);
    for (uint32_t i = 0; i < x->n_abuckets; i++) {
        uint32_t a = buckets[(hash + i) & (x->n_abuckets - 1)];
        if (a == BRG_NONE)
            return NULL;
        if (answers[a].context == context && string_is(x, answers[a].name, name, name_len) &&
            string_is(x, answers[a].requester, requester, requester_len))
            return &answers[a];
    }
    return NULL;
}

static const struct brg_str *root_strings(const struct brg_index *x)
{
    return (const struct brg_str *)((const char *)x + x->roots_off);
}

/* Whether a canonical path (len 0: "/") is a covered root or lies under one. */
static int is_covered(const struct brg_index *x, const char *path, size_t len)
{
    const struct brg_str *roots = root_strings(x);
    for (uint32_t i = 0; i < x->n_roots; i++) {
        size_t n = roots[i].len;
        if (n == 1) /* the root is "/" */
            return 1;
        if (len >= n && (len == n || path[n] == '/') &&
            memcmp(path, brg_string(x, roots[i]), n) == 0)
            return 1;
    }
    return 0;
}

/* Whether a canonical path leads to a covered root. Roots are canonical, so it is a directory. */
static int leads_to_root(const struct brg_index *x, const char *path, size_t len)
{
    const struct brg_str *roots = root_strings(x);
    for (uint32_t i = 0; i < x->n_roots; i++) {
        const char *root = brg_string(x, roots[i]);
        if (roots[i].len >= len && (roots[i].len == len || root[len] == '/') &&
            memcmp(path, root, len) == 0)
            return 1;
    }
    return 0;
}

/* `a` may stand at the front of `out` already, and `b` further back in it. */
static void copy_out(char *out, size_t out_size, const char *a, size_t a_len, const char *b)
{
    size_t b_len = strlen(b);
    if (!out || !out_size)
        return;
    if (a_len + b_len >= out_size) {
        out[0] = '\0';
        return;
    }
    if (a != out)
        memcpy(out, a, a_len);
    for (size_t i = 0; i <= b_len; i++) /* memmove is not there for freestanding code */
        out[a_len + i] = b[i];
}

static void walk_to_root(struct walk *w)
{
    w->len = 0;
    w->hash = BRG_HASH_SEED;
    w->at = brg_index_find(w->x, "/", 1);
}

static void walk_to_parent(struct walk *w)
{
    while (w->len > 0 && w->room[--w->len] != '/')
        ;
    if (w->len == 0) {
        walk_to_root(w);
        return;
    }
    w->hash = brg_hash(w->room, w->len, BRG_HASH_SEED);
    w->at = find_hashed(w->x, w->room, w->len, w->hash);
}

/* Whether a directory is known not to have a name that has no entry. */
static int lacks_name(const struct brg_entry *dir, const char *name, size_t n)
{
    int dots = name[0] == '.' && (n == 1 || (n == 2 && name[1] == '.'));
    return dir->kind == BRG_DIR && (dir->flags & BRG_LISTED) && (dir->flags & BRG_COVERED) &&
           !dots && n <= MAX_NAME;
}

/* Puts the target of a link in front of what remains. Returns 0 if there is no room. */
static int walk_follow(struct walk *w, const struct brg_entry *link)
{
    const char *target = brg_string(w->x, link->target);
    size_t target_len = link->target.len, rest_len = strlen(w->rest);
    if (rest_len == 0) {
        w->rest = target;
        w->rest_in_room = 0;
    } else {
        if (rest_len >= w->size)
            return 0;
        size_t rest_at = w->rest_in_room ? (size_t)(w->rest - w->room) : w->size - rest_len - 1;
        if (rest_at < w->len + target_len)
            return 0;
        if (!w->rest_in_room)
            memcpy(w->room + rest_at, w->rest, rest_len + 1);
        memcpy(w->room + rest_at - target_len, target, target_len);
        w->rest = w->room + rest_at - target_len;
        w->rest_in_room = 1;
    }
    if (target[0] == '/')
        walk_to_root(w);
    return 1;
}

/* Takes the next component off what remains. Returns its length, 0 at the end. */
static size_t walk_next(struct walk *w, const char **name)
{
    while (*w->rest == '/')
        w->rest++;
    *name = w->rest;
    while (*w->rest && *w->rest != '/')
        w->rest++;
    return (size_t)(w->rest - *name);
}

/* Where in the room a component of n bytes after the directory reached would end; 0 if it would
 * overwrite what it is copied from. */
static size_t walk_append(struct walk *w, const char *name, size_t n)
{
    size_t limit = w->rest_in_room ? (size_t)(name - w->room) : w->size;
    if (w->len + 1 + n > limit)
        return 0;
    w->room[w->len] = '/';
    memcpy(w->room + w->len + 1, name, n);
    return w->len + 1 + n;
}

/* Walks until there is an answer. BRG_UNKNOWN and BRG_OUTSIDE leave in the room's first *end bytes
 * and w->rest what was reached; *end 0 means that only the path as given will do. */
static enum brg_found walk_run(struct walk *w, int follow, uint32_t *entry, int *err, size_t *end)
{
    const struct brg_index *x = w->x;
    const struct brg_entry *entries = brg_entries(x);
    const char *name;
    size_t n;

    while ((n = walk_next(w, &name)) > 0) {
        if (n == 1 && name[0] == '.')
            continue;
        if (n == 2 && name[0] == '.' && name[1] == '.') {
            walk_to_parent(w);
            continue;
        }
        *end = walk_append(w, name, n);
        if (*end == 0)
            return BRG_UNKNOWN;
        uint64_t hash = brg_hash(w->room + w->len, *end - w->len, w->hash);
        uint32_t e = find_hashed(x, w->room, *end, hash);
        if (e == BRG_NONE) {
            if (w->at != BRG_NONE && lacks_name(&entries[w->at], name, n)) {
                *entry = w->at;
                *err = ENOENT;
                return BRG_MISSING;
            }
            if (!leads_to_root(x, w->room, *end))
                return is_covered(x, w->room, *end) ? BRG_UNKNOWN : BRG_OUTSIDE;
        }
        int kind = e == BRG_NONE ? BRG_DIR : entries[e].kind;
        if (kind == BRG_DIR) {
            w->at = e;
            w->len = *end;
            w->hash = hash;
            continue;
        }
        int as_dir = *w->rest == '/'; /* more components, or a trailing slash */
        if (kind == BRG_SYMLINK && (as_dir || follow)) {
            if (w->link == BRG_NONE && !brg_entry_lasts(x, &entries[e]))
                w->link = e;
            if (w->links++ == MAX_LINKS || !walk_follow(w, &entries[e])) {
                *entry = e;
                *end = 0;
                return BRG_UNKNOWN;
            }
            continue;
        }
        if (!(entries[e].flags & BRG_COVERED))
            return BRG_OUTSIDE;
        *entry = e;
        if (kind == BRG_OTHER)
            return BRG_UNKNOWN;
        if (kind == BRG_ABSENT || as_dir) {
            *err = kind == BRG_ABSENT ? entries[e].err : ENOTDIR;
            return BRG_MISSING;
        }
        return BRG_EXISTS;
    }

    *end = w->len;
    if (w->len == 0) { /* keeps what is handed back from looking like "as given" */
        w->room[0] = '/';
        *end = 1;
    }
    if (w->at == BRG_NONE)
        return is_covered(x, w->room, w->len) ? BRG_UNKNOWN : BRG_OUTSIDE;
    if (!(entries[w->at].flags & BRG_COVERED))
        return BRG_OUTSIDE;
    *entry = w->at;
    return BRG_EXISTS;
}

/* The answer for an entry hit by the path's own bytes; BRG_UNKNOWN when it takes a walk. */
static enum brg_found answer_directly(const struct brg_entry *e, int follow, int *err)
{
    if (!(e->flags & BRG_COVERED) || e->kind == BRG_OTHER || (e->kind == BRG_SYMLINK && follow))
        return BRG_UNKNOWN;
    if (e->kind != BRG_ABSENT)
        return BRG_EXISTS;
    *err = e->err;
    return BRG_MISSING;
}

/* Walks on from the path's own directory, if `w` says that it has an entry, otherwise from "/". The
 * room may be `out`. */
static enum brg_found walk_in(struct walk *w, char *room, size_t size, const char *path, int follow,
                              uint32_t *entry, int *err, char *out, size_t out_size)
{
    w->room = room;
    w->size = size;
    if (w->at != BRG_NONE && w->len < size) {
        memcpy(room, path, w->len); /* as it stands: it is canonical */
        w->rest = path + w->len;
    } else {
        w->rest = path;
        walk_to_root(w);
    }

    size_t end = 0;
    *entry = BRG_NONE;
    enum brg_found found = walk_run(w, follow, entry, err, &end);
    if (found == BRG_OUTSIDE)
        *entry = w->link;
    if (found == BRG_UNKNOWN || found == BRG_OUTSIDE) {
        if (end == 0)
            copy_out(out, out_size, path, strlen(path), "");
        else
            copy_out(out, out_size, room, end, w->rest);
    }
    return found;
}

/* For a caller that gives no room. Not inlined: others have no stack for it. */
__attribute__((noinline)) static enum brg_found walk_in_own_room(struct walk *w, const char *path,
                                                                 int follow, uint32_t *entry,
                                                                 int *err, char *out,
                                                                 size_t out_size)
{
    char room[ROOM];
    return walk_in(w, room, sizeof room, path, follow, entry, err, out, out_size);
}

enum brg_found brg_index_resolve(const struct brg_index *x, const char *path, int follow,
                                 uint32_t *entry, int *err, char *out, size_t out_size)
{
    size_t len = strlen(path), name_at = len;
    *entry = BRG_NONE;
    if (path[0] != '/' || len >= MAX_PATH) {
        copy_out(out, out_size, path, len, "");
        return path[0] != '/' ? BRG_OUTSIDE : BRG_UNKNOWN;
    }
    while (path[name_at - 1] != '/')
        name_at--;
    size_t dir_len = name_at - 1;
    uint64_t dir_hash = brg_hash(path, dir_len, BRG_HASH_SEED);
    uint32_t dir = BRG_NONE;
    if (name_at < len) {
        uint64_t hash = brg_hash(path + dir_len, len - dir_len, dir_hash);
        uint32_t e = find_hashed(x, path, len, hash);
        enum brg_found found =
            e == BRG_NONE ? BRG_UNKNOWN : answer_directly(&brg_entries(x)[e], follow, err);
        if (found != BRG_UNKNOWN) {
            *entry = e;
            return found;
        }
        dir = find_hashed(x, path, dir_len, dir_hash);
        if (e == BRG_NONE && dir != BRG_NONE &&
            lacks_name(&brg_entries(x)[dir], path + name_at, len - name_at)) {
            *entry = dir;
            *err = ENOENT;
            return BRG_MISSING;
        }
    }

    struct walk w = {.x = x, .at = BRG_NONE, .link = BRG_NONE};
    if (dir != BRG_NONE && brg_entries(x)[dir].kind == BRG_DIR) {
        w.at = dir;
        w.len = dir_len;
        w.hash = dir_hash;
    }
    if (out_size < LITTLE)
        return walk_in_own_room(&w, path, follow, entry, err, out, out_size);
    return walk_in(&w, out, out_size, path, follow, entry, err, out, out_size);
}
