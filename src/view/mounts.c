/* Comparing mount tables. See mounts.h. */
#include "view/mounts.h"
#include "base/sys.h"
#include "base/text.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_TABLE = 4 << 20
};

/* A line of mountinfo (proc(5)): `36 35 98:0 /root /point options ...`. */
struct mount {
    const char *device, *root, *point;
};

struct table {
    char *text;
    struct mount *mounts;
    size_t n;
};

/* Spaces and their like stand as three octal digits there. */
static void unescape(char *text)
{
    char *to = text;
    for (; *text; text++) {
        unsigned code;
        if (*text == '\\' && strspn(text + 1, "01234567") >= 3 &&
            sscanf(text + 1, "%3o", &code) == 1) {
            *to++ = (char)code;
            text += 3;
        } else {
            *to++ = *text;
        }
    }
    *to = '\0';
}

static int add_line(struct table *t, char *line)
{
    char *rest = NULL, *fields[5];
    for (int i = 0; i < 5; i++)
        if (!(fields[i] = strtok_r(i ? NULL : line, " ", &rest)))
            return 0;
    struct mount *more = realloc(t->mounts, (t->n + 1) * sizeof *more);
    if (!more)
        return -1;
    unescape(fields[3]);
    unescape(fields[4]);
    t->mounts = more;
    t->mounts[t->n++] = (struct mount){fields[2], fields[3], fields[4]};
    return 0;
}

static void table_free(struct table *t)
{
    free(t->text);
    free(t->mounts);
}

/* 0, or -1 with *t empty. */
static int table_read(struct table *t, const char *path)
{
    *t = (struct table){malloc(MAX_TABLE), NULL, 0};
    long n = t->text ? sys_read_text(path, t->text, MAX_TABLE) : -1;
    int err = n > 0 && n < MAX_TABLE - 1 ? 0 : -1;
    char *rest = NULL;
    for (char *line = err ? NULL : strtok_r(t->text, "\n", &rest); line && !err;
         line = strtok_r(NULL, "\n", &rest))
        err = add_line(t, line);
    if (!err && t->n)
        return 0;
    table_free(t);
    *t = (struct table){NULL, NULL, 0};
    return -1;
}

/* Whether `path`, of n bytes, is `folder` or lies below it. */
static int is_in(const char *path, size_t n, const char *folder)
{
    size_t m = strlen(folder);
    if (m == 1)
        return 1;
    return n >= m && memcmp(path, folder, m) == 0 && (n == m || path[m] == '/');
}

/* The mount that `path` lies on: of several on one point, the last. */
static const struct mount *mount_of(const struct table *t, const char *path, size_t n)
{
    const struct mount *found = NULL;
    for (size_t i = 0; i < t->n; i++)
        if (is_in(path, n, t->mounts[i].point) &&
            (!found || strlen(t->mounts[i].point) >= strlen(found->point)))
            found = &t->mounts[i];
    return found;
}

static int same(const struct mount *a, const struct mount *b)
{
    return a && b && text_same(a->device, b->device) && text_same(a->root, b->root) &&
           text_same(a->point, b->point);
}

/* Whether every mount of `a` below `folder` is one of `b`, too. */
static int has_those_below(const struct table *a, const struct table *b, const char *folder)
{
    for (size_t i = 0; i < a->n; i++) {
        const char *point = a->mounts[i].point;
        size_t n = strlen(point);
        if (is_in(point, n, folder) && !text_same(point, folder) &&
            !same(mount_of(a, point, n), mount_of(b, point, n)))
            return 0;
    }
    return 1;
}

static int are_alike(const struct brg_index *x, const struct table *a, const struct table *b)
{
    const struct brg_str *roots = (const struct brg_str *)((const char *)x + x->roots_off);
    const struct brg_entry *entries = brg_entries(x);
    for (uint32_t i = 0; i < x->n_roots; i++) {
        char folder[PATH_MAX];
        struct text t = text_in(folder, sizeof folder);
        text_bytes(&t, brg_string(x, roots[i]), roots[i].len);
        if (t.full || !same(mount_of(a, folder, t.len), mount_of(b, folder, t.len)) ||
            !has_those_below(a, b, folder) || !has_those_below(b, a, folder))
            return 0;
    }
    for (uint32_t i = 0; i < x->n_entries; i++) {
        const char *path = brg_string(x, entries[i].path);
        size_t n = entries[i].path.len;
        if (!(entries[i].flags & BRG_COVERED) && !same(mount_of(a, path, n), mount_of(b, path, n)))
            return 0;
    }
    return 1;
}

int mounts_alike(const struct brg_index *x, const char *there)
{
    struct table a, b;
    if (table_read(&a, there) != 0)
        return 0;
    int alike = table_read(&b, "/proc/self/mountinfo") == 0 && are_alike(x, &a, &b);
    table_free(&a);
    table_free(&b);
    return alike;
}
