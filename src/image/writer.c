/* Collecting what goes into an image: entries, answers, roots, sections. */
#include "image/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

static int no_memory(struct brg_error *err)
{
    return brg_error_set(err, -ENOMEM, "no memory to collect the entries of an image");
}

/* Makes room for one more element. Returns the array, or NULL. */
static void *grow(void *array, size_t n, size_t *room, size_t size)
{
    if (n < *room)
        return array;
    size_t wanted = *room ? *room * 2 : 64;
    void *bigger = realloc(array, wanted * size);
    if (bigger)
        *room = wanted;
    return bigger;
}

static int check_options(const struct brg_image_options *o, struct brg_error *err)
{
    if (o->block_bytes % BRG_PAGE || o->block_bytes < BRG_BLOCK_BYTES_MIN ||
        o->block_bytes > BRG_BLOCK_BYTES_MAX)
        return brg_error_set(err, -EINVAL,
                             "a block of %u bytes is not possible: choose a multiple "
                             "of 4096 up to 64 MiB",
                             o->block_bytes);
    if (o->level < 0 || o->level > 22)
        return brg_error_set(err, -EINVAL,
                             "compression level %d is not possible: choose 0 (none) "
                             "to 22",
                             o->level);
    return 0;
}

/* PATH -> FOLDER/.NAME.PID.tmp */
static char *temporary_beside(const char *path)
{
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash - path) + 1 : 0;
    char *name = NULL;
    if (asprintf(&name, "%.*s.%s.%ld.tmp", folder, path, path + folder, (long)getpid()) < 0)
        return NULL;
    return name;
}

int brg_image_writer_create(const char *path, const struct brg_image_options *options,
                            struct brg_image_writer **writer, struct brg_error *err)
{
    struct brg_image_options o = {0, 3, 0};
    if (options)
        o = *options;
    if (o.block_bytes == 0)
        o.block_bytes = BRG_BLOCK_BYTES_DEFAULT;
    int rc = check_options(&o, err);
    if (rc != 0)
        return rc;
    struct brg_image_writer *w = calloc(1, sizeof *w);
    if (!w)
        return no_memory(err);
    w->options = o;
    w->fd = -1;
    w->path = strdup(path);
    w->temporary = temporary_beside(path);
    if (!w->path || !w->temporary) {
        brg_image_writer_destroy(w);
        return no_memory(err);
    }
    unlink(w->temporary); /* of a killed process that had our number */
    w->fd = open(w->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (w->fd < 0) {
        rc = brg_error_system(err, -errno, "cannot write an image at %s", path);
        brg_image_writer_destroy(w);
        return rc;
    }
    *writer = w;
    return 0;
}

void brg_image_writer_destroy(struct brg_image_writer *w)
{
    if (!w)
        return;
    if (w->fd >= 0) {
        unlink(w->temporary);
        close(w->fd);
    }
    brg_image_close(w->base);
    for (size_t i = 0; i < w->n_items; i++) {
        free(w->items[i].path);
        free(w->items[i].target);
        free(w->items[i].source);
        free(w->items[i].data);
    }
    for (size_t i = 0; i < w->n_answers; i++) {
        free(w->answers[i].requester);
        free(w->answers[i].name);
        free(w->answers[i].path);
    }
    for (size_t i = 0; i < w->n_roots; i++)
        free(w->roots[i]);
    free(w->items);
    free(w->answers);
    free(w->roots);
    free(w->python.bytes);
    free(w->meta.bytes);
    free(w->path);
    free(w->temporary);
    free(w);
}

static int check_canonical(const char *path, struct brg_error *err)
{
    if (brg_path_is_canonical(path, strlen(path)))
        return 0;
    return brg_error_set(err, -EINVAL,
                         "%s cannot be in an image: give an absolute path without "
                         "\".\", \"..\" or doubled slashes, shorter than 4096 bytes",
                         path);
}

static int check_entry(const struct brg_image_entry *e, struct brg_error *err)
{
    int rc = check_canonical(e->path, err);
    if (rc != 0)
        return rc;
    const char *why = NULL;
    if (e->kind < BRG_FILE || e->kind > BRG_OTHER)
        why = "its kind is unknown";
    else if (e->kind == BRG_SYMLINK &&
             (!e->target || !e->target[0] || strlen(e->target) >= BRG_PAGE))
        why = "a symbolic link needs a target shorter than 4096 bytes";
    else if (e->kind == BRG_ABSENT && e->err != ENOENT && e->err != ENOTDIR)
        why = "an absence needs ENOENT or ENOTDIR";
    else if (e->kind != BRG_FILE && (e->source || e->data))
        why = "only a file has a content";
    else if ((e->flags & BRG_LISTED) && e->kind != BRG_DIR)
        why = "only a directory can be listed";
    else if ((e->flags & BRG_SNAPSHOT) && (e->kind != BRG_DIR || (e->flags & BRG_LISTED)))
        why = "only a directory that is not listed can be a snapshot";
    return why ? brg_error_set(err, -EINVAL, "%s cannot be in an image: %s", e->path, why) : 0;
}

static void fill_entry(struct brg_entry *to, const struct brg_image_entry *from)
{
    memset(to, 0, sizeof *to);
    to->kind = (uint8_t)from->kind;
    to->order = from->order;
    to->parent = to->first_child = to->content = BRG_NONE;
    to->name_off = (uint32_t)(strrchr(from->path, '/') - from->path) + 1;
    if (from->kind == BRG_ABSENT) {
        to->err = (uint16_t)from->err;
        return;
    }
    to->flags = from->flags & (BRG_LISTED | BRG_SNAPSHOT | BRG_MOUNT_DEV | BRG_OWN_RIGHTS);
    to->mode = from->mode;
    to->uid = from->uid;
    to->gid = from->gid;
    to->nlink = from->nlink;
    to->blksize = from->blksize;
    to->size = from->data ? from->data_bytes : from->size;
    to->blocks = from->blocks;
    to->dev = from->dev;
    to->ino = from->ino;
    to->rdev = from->rdev;
    to->atime_ns = from->atime_ns;
    to->mtime_ns = from->mtime_ns;
    to->ctime_ns = from->ctime_ns;
}

static int copy_text(const char *from, char **to)
{
    if (from && !(*to = strdup(from)))
        return -ENOMEM;
    return 0;
}

static int copy_bytes(const void *from, size_t n, void **to)
{
    *to = malloc(n ? n : 1);
    if (!*to)
        return -ENOMEM;
    memcpy(*to, from, n);
    return 0;
}

int brg_image_writer_add_entry(struct brg_image_writer *w, const struct brg_image_entry *e,
                               struct brg_error *err)
{
    int rc = check_entry(e, err);
    if (rc != 0)
        return rc;
    void *items = grow(w->items, w->n_items, &w->room_items, sizeof *w->items);
    if (!items)
        return no_memory(err);
    w->items = items;
    struct writer_item item = {0};
    fill_entry(&item.entry, e);
    rc = copy_text(e->path, &item.path);
    if (rc == 0 && e->kind == BRG_SYMLINK)
        rc = copy_text(e->target, &item.target);
    if (rc == 0 && e->data)
        rc = copy_bytes(e->data, e->data_bytes, &item.data);
    else if (rc == 0)
        rc = copy_text(e->source, &item.source);
    if (rc != 0) {
        free(item.path);
        free(item.target);
        return no_memory(err);
    }
    w->items[w->n_items++] = item;
    return 0;
}

int brg_image_writer_add_answer(struct brg_image_writer *w, uint64_t context, const char *requester,
                                const char *name, const char *path, struct brg_error *err)
{
    void *answers = grow(w->answers, w->n_answers, &w->room_answers, sizeof *w->answers);
    if (!answers)
        return no_memory(err);
    w->answers = answers;
    struct writer_answer a = {context, strdup(requester), strdup(name), strdup(path ? path : "")};
    if (!a.requester || !a.name || !a.path) {
        free(a.requester);
        free(a.name);
        free(a.path);
        return no_memory(err);
    }
    w->answers[w->n_answers++] = a;
    return 0;
}

int brg_image_writer_add_root(struct brg_image_writer *w, const char *path, struct brg_error *err)
{
    int rc = check_canonical(path, err);
    if (rc != 0)
        return rc;
    void *roots = grow(w->roots, w->n_roots, &w->room_roots, sizeof *w->roots);
    if (!roots)
        return no_memory(err);
    w->roots = roots;
    char *copy = strdup(path);
    if (!copy)
        return no_memory(err);
    w->roots[w->n_roots++] = copy;
    return 0;
}

int brg_image_writer_set_section(struct brg_image_writer *w, enum brg_image_section section,
                                 const void *bytes, size_t n, struct brg_error *err)
{
    if (section != BRG_SECTION_META && section != BRG_SECTION_PYTHON)
        return brg_error_set(err, -EINVAL, "an image has no section %d", (int)section);
    struct writer_bytes *to = section == BRG_SECTION_META ? &w->meta : &w->python;
    void *copy = NULL;
    if (copy_bytes(bytes, n, &copy) != 0)
        return no_memory(err);
    free(to->bytes);
    to->bytes = copy;
    to->n = n;
    return 0;
}
