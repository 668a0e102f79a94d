/* From a writer's lists to the bytes of an index: sort, lay out, fill. No I/O.
 *
 * Items are sorted by (directory, absent or not, name). A directory's path is shorter than its
 * children's and a prefix of their directory, so parents come first; siblings lie together,
 * those that exist before known absences.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "image/writer.h"

static int compare_bytes(const char *a, size_t a_len, const char *b, size_t b_len)
{
    int c = memcmp(a, b, a_len < b_len ? a_len : b_len);
    return c ? c : (a_len > b_len) - (a_len < b_len);
}

static int compare_items(const void *left, const void *right)
{
    const struct writer_item *a = left, *b = right;
    int c = compare_bytes(a->path, a->entry.name_off - 1, b->path, b->entry.name_off - 1);
    if (c == 0)
        c = (a->entry.kind == BRG_ABSENT) - (b->entry.kind == BRG_ABSENT);
    return c ? c : strcmp(a->path + a->entry.name_off, b->path + b->entry.name_off);
}

static int compare_answers(const void *left, const void *right)
{
    const struct writer_answer *a = left, *b = right;
    int c = (a->context > b->context) - (a->context < b->context);
    if (c == 0)
        c = strcmp(a->requester, b->requester);
    return c ? c : strcmp(a->name, b->name);
}

static int compare_texts(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* Keeps one of several equal answers. */
static int merge_answers(struct brg_image_writer *w, struct brg_error *err)
{
    size_t kept = 0;
    for (size_t i = 0; i < w->n_answers; i++) {
        struct writer_answer a = w->answers[i];
        const struct writer_answer *last = kept ? &w->answers[kept - 1] : NULL;
        if (last && compare_answers(last, &a) == 0) {
            if (strcmp(last->path, a.path) != 0)
                return brg_error_set(err, -EEXIST,
                                     "two different answers for %s asked for by %s: "
                                     "'%s' and '%s'; add neither of them",
                                     a.name, a.requester, last->path, a.path);
            free(a.requester);
            free(a.name);
            free(a.path);
            w->answers[i] = (struct writer_answer){0};
            continue;
        }
        w->answers[i] = (struct writer_answer){0};
        w->answers[kept++] = a;
    }
    w->n_answers = kept;
    return 0;
}

static void merge_roots(struct brg_image_writer *w)
{
    size_t kept = 0;
    for (size_t i = 0; i < w->n_roots; i++) {
        if (kept && strcmp(w->roots[kept - 1], w->roots[i]) == 0)
            free(w->roots[i]);
        else
            w->roots[kept++] = w->roots[i];
    }
    w->n_roots = kept;
}

int brg_writer_sort(struct brg_image_writer *w, struct brg_error *err)
{
    if (w->n_items)
        qsort(w->items, w->n_items, sizeof *w->items, compare_items);
    if (w->n_answers)
        qsort(w->answers, w->n_answers, sizeof *w->answers, compare_answers);
    if (w->n_roots)
        qsort(w->roots, w->n_roots, sizeof *w->roots, compare_texts);
    merge_roots(w);
    return merge_answers(w, err);
}

static uint64_t aligned(uint64_t n)
{
    return (n + 7) & ~UINT64_C(7);
}

/* A power of two, at most half full. */
static uint64_t buckets_for(uint64_t n)
{
    uint64_t buckets = 8;
    while (buckets < 2 * (n + 1))
        buckets *= 2;
    return buckets;
}

static uint64_t strings_bytes(const struct brg_image_writer *w)
{
    uint64_t n = 1; /* the empty string, at 0 */
    for (size_t i = 0; i < w->n_items; i++) {
        n += strlen(w->items[i].path) + 1;
        if (w->items[i].target)
            n += strlen(w->items[i].target) + 1;
    }
    for (size_t i = 0; i < w->n_answers; i++)
        n += strlen(w->answers[i].requester) + strlen(w->answers[i].name) +
             strlen(w->answers[i].path) + 3;
    for (size_t i = 0; i < w->n_roots; i++)
        n += strlen(w->roots[i]) + 1;
    return n;
}

/* Sets counts and offsets of the header. The counts fit; the caller has looked. */
static void lay_out(const struct brg_image_writer *w, size_t n_contents, struct brg_index *x)
{
    memset(x, 0, sizeof *x);
    x->magic = BRG_INDEX_MAGIC;
    x->version = BRG_INDEX_VERSION;
    x->header_bytes = sizeof *x;
    x->n_entries = (uint32_t)w->n_items;
    x->n_buckets = (uint32_t)buckets_for(w->n_items);
    x->n_contents = (uint32_t)n_contents;
    x->n_answers = (uint32_t)w->n_answers;
    x->n_abuckets = (uint32_t)buckets_for(w->n_answers);
    x->n_roots = (uint32_t)w->n_roots;
    x->entries_off = sizeof *x;
    x->buckets_off = x->entries_off + x->n_entries * sizeof(struct brg_entry);
    x->contents_off = x->buckets_off + x->n_buckets * sizeof(uint32_t);
    x->answers_off = x->contents_off + x->n_contents * sizeof(struct brg_content);
    x->abuckets_off = x->answers_off + x->n_answers * sizeof(struct brg_answer);
    x->roots_off = x->abuckets_off + x->n_abuckets * sizeof(uint32_t);
    x->strings_off = x->roots_off + x->n_roots * sizeof(struct brg_str);
    x->strings_bytes = strings_bytes(w);
    x->python_off = aligned(x->strings_off + x->strings_bytes);
    x->python_bytes = w->python.n;
    x->meta_off = aligned(x->python_off + x->python_bytes);
    x->meta_bytes = w->meta.n;
    x->bytes = aligned(x->meta_off + x->meta_bytes);
}

uint64_t brg_writer_index_bytes(const struct brg_image_writer *w, size_t n_contents)
{
    struct brg_index x;
    lay_out(w, n_contents, &x);
    return x.bytes;
}

struct build {
    const struct brg_image_writer *w;
    struct brg_index *x;
    uint32_t strings_used;
};

static void *table(const struct build *b, uint64_t off)
{
    return (char *)b->x + off;
}

static struct brg_str add_string(struct build *b, const char *text)
{
    size_t len = strlen(text);
    struct brg_str s = {0, 0};
    if (len == 0)
        return s;
    s.off = b->strings_used;
    s.len = (uint32_t)len;
    memcpy((char *)b->x + b->x->strings_off + s.off, text, len + 1);
    b->strings_used += (uint32_t)len + 1;
    return s;
}

static void put_bucket(uint32_t *buckets, uint32_t n_buckets, uint64_t hash, uint32_t item)
{
    uint32_t at = (uint32_t)hash & (n_buckets - 1);
    while (buckets[at] != BRG_NONE)
        at = (at + 1) & (n_buckets - 1);
    buckets[at] = item;
}

static int under_root(const struct brg_image_writer *w, const char *path)
{
    for (size_t i = 0; i < w->n_roots; i++) {
        size_t n = strlen(w->roots[i]);
        if (n == 1 || (strncmp(path, w->roots[i], n) == 0 && (path[n] == '\0' || path[n] == '/')))
            return 1;
    }
    return 0;
}

static int add_entries(struct build *b, struct brg_error *err)
{
    struct brg_entry *entries = table(b, b->x->entries_off);
    uint32_t *buckets = table(b, b->x->buckets_off);
    memset(buckets, 0xff, b->x->n_buckets * sizeof *buckets);
    for (uint32_t i = 0; i < b->x->n_entries; i++) {
        const struct writer_item *item = &b->w->items[i];
        size_t len = strlen(item->path);
        if (brg_index_find(b->x, item->path, len) != BRG_NONE)
            return brg_error_set(err, -EEXIST, "%s was added to the image twice", item->path);
        entries[i] = item->entry;
        entries[i].path = add_string(b, item->path);
        if (item->target)
            entries[i].target = add_string(b, item->target);
        if (under_root(b->w, item->path))
            entries[i].flags |= BRG_COVERED;
        put_bucket(buckets, b->x->n_buckets, brg_hash(item->path, len, BRG_HASH_SEED), i);
    }
    return 0;
}

/* The nearest directory above a path that has an entry, or BRG_NONE. */
static uint32_t nearest_above(const struct brg_index *x, const char *path, size_t len)
{
    while (len > 1) {
        while (path[len - 1] != '/')
            len--;
        if (len > 1)
            len--;
        uint32_t e = brg_index_find(x, path, len);
        if (e != BRG_NONE)
            return e;
    }
    return BRG_NONE;
}

static int link_parents(struct build *b, struct brg_error *err)
{
    struct brg_entry *entries = table(b, b->x->entries_off);
    for (uint32_t i = 0; i < b->x->n_entries; i++) {
        struct brg_entry *e = &entries[i];
        const char *path = brg_string(b->x, e->path);
        uint32_t above = nearest_above(b->x, path, e->path.len);
        if (above == BRG_NONE)
            continue;
        struct brg_entry *p = &entries[above];
        int absences = e->kind == BRG_ABSENT && (p->kind == BRG_FILE || p->kind == BRG_ABSENT);
        if (p->kind != BRG_DIR && !absences)
            return brg_error_set(err, -EINVAL,
                                 "%s cannot be in the image, because %s is %s; give "
                                 "the path with all links resolved",
                                 path, brg_string(b->x, p->path),
                                 p->kind == BRG_SYMLINK ? "a symbolic link" : "no directory");
        if (p->path.len != (e->name_off == 1 ? 1 : e->name_off - 1))
            continue; /* an ancestor, but not the parent */
        e->parent = above;
        if (e->kind == BRG_ABSENT)
            continue;
        if (p->n_children++ == 0)
            p->first_child = i;
    }
    return 0;
}

static void add_answers(struct build *b)
{
    struct brg_answer *answers = table(b, b->x->answers_off);
    uint32_t *buckets = table(b, b->x->abuckets_off);
    memset(buckets, 0xff, b->x->n_abuckets * sizeof *buckets);
    for (uint32_t i = 0; i < b->x->n_answers; i++) {
        const struct writer_answer *from = &b->w->answers[i];
        struct brg_answer *a = &answers[i];
        uint32_t entry = BRG_NONE;
        int missing = 0;
        a->context = from->context;
        a->requester = add_string(b, from->requester);
        a->name = add_string(b, from->name);
        a->path = add_string(b, from->path);
        if (brg_index_resolve(b->x, from->path, 1, &entry, &missing, NULL, 0) != BRG_EXISTS)
            entry = BRG_NONE;
        a->entry = entry;
        put_bucket(buckets, b->x->n_abuckets,
                   brg_answer_hash(from->context, from->requester, from->name), i);
    }
}

int brg_writer_build_index(const struct brg_image_writer *w, const struct brg_content *contents,
                           size_t n_contents, struct brg_index **index, struct brg_error *err)
{
    if (w->n_items >= UINT32_MAX / 4 || w->n_answers >= UINT32_MAX / 4 ||
        w->n_roots >= UINT32_MAX / 4 || strings_bytes(w) >= UINT32_MAX)
        return brg_error_set(err, -EOVERFLOW,
                             "too many entries for one image (their paths together "
                             "may have 4 GiB): cover a smaller directory");
    struct brg_index head;
    lay_out(w, n_contents, &head);
    struct build b = {w, calloc(1, head.bytes), 1};
    if (!b.x)
        return brg_error_set(err, -ENOMEM, "no memory for an index of %llu bytes",
                             (unsigned long long)head.bytes);
    *b.x = head;
    if (n_contents)
        memcpy(table(&b, head.contents_off), contents, n_contents * sizeof *contents);
    struct brg_str *roots = table(&b, head.roots_off);
    for (uint32_t i = 0; i < head.n_roots; i++)
        roots[i] = add_string(&b, w->roots[i]);
    if (w->python.n)
        memcpy(table(&b, head.python_off), w->python.bytes, w->python.n);
    if (w->meta.n)
        memcpy(table(&b, head.meta_off), w->meta.bytes, w->meta.n);
    int rc = add_entries(&b, err);
    if (rc == 0)
        rc = link_parents(&b, err);
    if (rc != 0) {
        free(b.x);
        return rc;
    }
    add_answers(&b);
    b.x->checksum = brg_index_checksum(b.x);
    *index = b.x;
    return 0;
}
