/* Is this index safe to look things up in? For bytes from an untrusted source.
 *
 * After it has passed, no look-up reads out of bounds, no chain of parents is circular, every
 * path is canonical (so that a path below a folder stays below it), and every entry with content
 * names a content of its own size. No libc beyond memcmp.
 */
#include "image/index.h"

#include <errno.h>
#include <string.h>

enum {
    MAX_PATH = 4096
};

struct check {
    const struct brg_index *x;
    const char **why;
};

static int bad(struct check *c, const char *why)
{
    *c->why = why;
    return -EBADMSG;
}

static int table_is_inside(const struct brg_index *x, uint64_t off, uint64_t n, uint64_t size)
{
    return off % 8 == 0 && off >= sizeof *x && off <= x->bytes && n <= (x->bytes - off) / size;
}

static int string_is_inside(const struct brg_index *x, struct brg_str s)
{
    return (uint64_t)s.off + s.len < x->strings_bytes && brg_string(x, s)[s.len] == '\0';
}

int brg_path_is_canonical(const char *path, size_t len)
{
    if (len == 0 || len >= MAX_PATH || path[0] != '/')
        return 0;
    if (len == 1)
        return 1;
    size_t start = 1;
    for (size_t i = 1; i <= len; i++) {
        if (i < len && path[i] == '\0')
            return 0;
        if (i < len && path[i] != '/')
            continue;
        size_t n = i - start;
        if (n == 0 || (n == 1 && path[start] == '.') ||
            (n == 2 && path[start] == '.' && path[start + 1] == '.'))
            return 0;
        start = i + 1;
    }
    return 1;
}

static int check_tables(struct check *c)
{
    const struct brg_index *x = c->x;
    if (!table_is_inside(x, x->entries_off, x->n_entries, sizeof(struct brg_entry)))
        return bad(c, "the table of entries lies outside");
    if (!table_is_inside(x, x->buckets_off, x->n_buckets, sizeof(uint32_t)))
        return bad(c, "the buckets of the entries lie outside");
    if (!table_is_inside(x, x->contents_off, x->n_contents, sizeof(struct brg_content)))
        return bad(c, "the table of contents lies outside");
    if (!table_is_inside(x, x->answers_off, x->n_answers, sizeof(struct brg_answer)))
        return bad(c, "the table of answers lies outside");
    if (!table_is_inside(x, x->abuckets_off, x->n_abuckets, sizeof(uint32_t)))
        return bad(c, "the buckets of the answers lie outside");
    if (!table_is_inside(x, x->roots_off, x->n_roots, sizeof(struct brg_str)))
        return bad(c, "the table of covered roots lies outside");
    if (!table_is_inside(x, x->strings_off, x->strings_bytes, 1))
        return bad(c, "the strings lie outside");
    if (!table_is_inside(x, x->python_off, x->python_bytes, 1))
        return bad(c, "the import tables lie outside");
    if (!table_is_inside(x, x->meta_off, x->meta_bytes, 1))
        return bad(c, "the description lies outside");
    return 0;
}

static int check_buckets(struct check *c, uint64_t off, uint32_t n_buckets, uint32_t n)
{
    const uint32_t *buckets = (const uint32_t *)((const char *)c->x + off);
    uint32_t used = 0;
    if (n_buckets == 0 || (n_buckets & (n_buckets - 1)) != 0 || n_buckets <= n)
        return bad(c, "a number of buckets is not a power of two above the number of items");
    for (uint32_t i = 0; i < n_buckets; i++) {
        if (buckets[i] == BRG_NONE)
            continue;
        if (buckets[i] >= n)
            return bad(c, "a bucket names an item that does not exist");
        used++;
    }
    return used == n ? 0 : bad(c, "the buckets do not hold every item once");
}

static int check_content(struct check *c, const struct brg_entry *e)
{
    const struct brg_index *x = c->x;
    if (!(e->flags & BRG_HAS_CONTENT))
        return e->content == BRG_NONE ? 0 : bad(c, "an entry has a content but no flag for it");
    if (e->kind != BRG_FILE || e->content >= x->n_contents)
        return bad(c, "an entry names a content that does not exist");
    if (brg_contents(x)[e->content].size != e->size)
        return bad(c, "the size of a file and of its content differ");
    return 0;
}

static int check_parent(struct check *c, uint32_t i, const struct brg_entry *e)
{
    const struct brg_index *x = c->x;
    const char *path = brg_string(x, e->path);
    if (e->name_off == 0 || e->name_off > e->path.len || path[e->name_off - 1] != '/')
        return bad(c, "the name of an entry does not start after a slash");
    for (uint32_t k = e->name_off; k < e->path.len; k++)
        if (path[k] == '/')
            return bad(c, "the name of an entry is not its last component");
    if (e->parent == BRG_NONE)
        return 0;
    if (e->parent >= i || e->path.len == 1)
        return bad(c, "the parent of an entry does not come before it");
    const struct brg_entry *p = &brg_entries(x)[e->parent];
    uint32_t parent_len = e->name_off == 1 ? 1 : e->name_off - 1;
    if (p->path.len != parent_len || memcmp(brg_string(x, p->path), path, parent_len) != 0)
        return bad(c, "the parent of an entry is another directory");
    int above_absence = e->kind == BRG_ABSENT && (p->kind == BRG_FILE || p->kind == BRG_ABSENT);
    if (p->kind != BRG_DIR && !above_absence)
        return bad(c, "the parent of an entry is not a directory");
    return 0;
}

static int check_children(struct check *c, uint32_t i, const struct brg_entry *e)
{
    const struct brg_index *x = c->x;
    if (e->n_children == 0)
        return 0;
    if (e->kind != BRG_DIR || e->first_child <= i || e->first_child >= x->n_entries ||
        e->n_children > x->n_entries - e->first_child)
        return bad(c, "the children of an entry lie outside");
    for (uint32_t k = 0; k < e->n_children; k++) {
        const struct brg_entry *child = &brg_entries(x)[e->first_child + k];
        if (child->parent != i || child->kind == BRG_ABSENT)
            return bad(c, "a child of a directory is not its child");
    }
    return 0;
}

static int check_entry(struct check *c, uint32_t i)
{
    const struct brg_index *x = c->x;
    const struct brg_entry *e = &brg_entries(x)[i];
    if (!string_is_inside(x, e->path) ||
        !brg_path_is_canonical(brg_string(x, e->path), e->path.len))
        return bad(c, "the path of an entry lies outside or is not canonical");
    if (e->kind < BRG_FILE || e->kind > BRG_OTHER)
        return bad(c, "the kind of an entry is unknown");
    if ((e->flags & BRG_LISTED) && e->kind != BRG_DIR)
        return bad(c, "an entry that is not a directory is marked as listed");
    if ((e->flags & BRG_SNAPSHOT) && e->kind != BRG_DIR)
        return bad(c, "an entry that is not a directory is marked as a snapshot");
    if (e->kind == BRG_ABSENT && e->err != ENOENT && e->err != ENOTDIR)
        return bad(c, "an absence has an unknown reason");
    if (e->kind == BRG_SYMLINK &&
        (!string_is_inside(x, e->target) || e->target.len == 0 || e->target.len >= MAX_PATH))
        return bad(c, "the target of a link lies outside or is empty");
    int rc = check_content(c, e);
    if (rc == 0)
        rc = check_parent(c, i, e);
    return rc;
}

static int check_contents(struct check *c)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < c->x->n_contents; i++) {
        const struct brg_content *content = &brg_contents(c->x)[i];
        if (content->raw_off != at || content->size > UINT64_MAX / 4 - at)
            return bad(c, "the contents do not follow each other");
        at += content->size;
    }
    return 0;
}

static int check_answers_and_roots(struct check *c)
{
    const struct brg_index *x = c->x;
    const struct brg_answer *answers =
        (const struct brg_answer *)((const char *)x + x->answers_off);
    const struct brg_str *roots = (const struct brg_str *)((const char *)x + x->roots_off);
    for (uint32_t i = 0; i < x->n_answers; i++) {
        if (!string_is_inside(x, answers[i].name) || !string_is_inside(x, answers[i].requester) ||
            !string_is_inside(x, answers[i].path))
            return bad(c, "a string of an answer lies outside");
        if (answers[i].entry != BRG_NONE && answers[i].entry >= x->n_entries)
            return bad(c, "an answer names an entry that does not exist");
    }
    for (uint32_t i = 0; i < x->n_roots; i++)
        if (!string_is_inside(x, roots[i]) ||
            !brg_path_is_canonical(brg_string(x, roots[i]), roots[i].len))
            return bad(c, "a covered root lies outside or is not canonical");
    return 0;
}

int brg_index_check(const void *index, size_t bytes, const char **why)
{
    struct check c = {index, why};
    if (bytes < sizeof *c.x)
        return bad(&c, "it is shorter than its header");
    if (c.x->magic != BRG_INDEX_MAGIC)
        return bad(&c, "it does not start as an index");
    if (c.x->version != BRG_INDEX_VERSION || c.x->header_bytes != sizeof *c.x)
        return bad(&c, "it has another version");
    if (c.x->bytes != bytes)
        return bad(&c, "its length is not what its header says");
    int rc = check_tables(&c);
    if (rc == 0)
        rc = check_contents(&c);
    for (uint32_t i = 0; rc == 0 && i < c.x->n_entries; i++)
        rc = check_entry(&c, i);
    for (uint32_t i = 0; rc == 0 && i < c.x->n_entries; i++)
        rc = check_children(&c, i, &brg_entries(c.x)[i]);
    if (rc == 0)
        rc = check_buckets(&c, c.x->buckets_off, c.x->n_buckets, c.x->n_entries);
    if (rc == 0)
        rc = check_buckets(&c, c.x->abuckets_off, c.x->n_abuckets, c.x->n_answers);
    if (rc == 0)
        rc = check_answers_and_roots(&c);
    return rc;
}
