/* See tree.h. Every path here is relative to root_fd; the index has been checked, and its canonical
 * paths hold no "..", so nothing leaves the root. */
#include "stage/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/io.h"
#include "stage/fault.h"

static const char *inside(const struct tree *t, const struct brg_entry *e)
{
    const char *path = brg_string(t->index, e->path);
    path += strspn(path, "/");
    return *path ? path : ".";
}

static int trouble(const struct tree *t, const struct brg_entry *e, int rc, const char *what,
                   struct brg_error *err)
{
    return brg_error_system(err, rc, "cannot %s %s in the node's memory", what,
                            brg_string(t->index, e->path));
}

/* Staged files belong to the user, who must be able to read what he could read, and run what he
 * could run, through whatever class he could. Set-id bits mean nothing on a copy. */
static mode_t file_mode(const struct brg_entry *e)
{
    mode_t mode = (e->mode & 0777) | 0400;
    if (e->mode & 0111)
        mode |= 0100;
    return mode;
}

static void entry_times(const struct brg_entry *e, struct timespec times[2])
{
    const int64_t ns[2] = {e->atime_ns, e->mtime_ns};
    for (int i = 0; i < 2; i++) {
        int64_t rest = ns[i] % 1000000000;
        times[i].tv_sec = (time_t)(ns[i] / 1000000000 - (rest < 0));
        times[i].tv_nsec = (long)(rest + (rest < 0 ? 1000000000 : 0));
    }
}

/* ---- what has no bytes ---- */

/* Makes the directories above a path, from the top; most are there already. */
static int make_parents(const struct tree *t, const struct brg_entry *e, char *made, size_t size,
                        struct brg_error *err)
{
    const char *path = inside(t, e), *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    if (n + 1 > size)
        return trouble(t, e, -ENAMETOOLONG, "make the folder of", err);
    if (n == 0 || (strncmp(made, path, n) == 0 && made[n] == '\0'))
        return 0; /* same folder as last time */
    memcpy(made, path, n);
    made[n] = '\0';
    if (mkdirat(t->root_fd, made, 0700) == 0 || errno == EEXIST)
        return 0;
    for (size_t i = 1; i <= n; i++) {
        if (made[i] != '/' && made[i] != '\0')
            continue;
        char kept = made[i];
        made[i] = '\0';
        int failed = mkdirat(t->root_fd, made, 0700) && errno != EEXIST;
        int rc = -errno;
        made[i] = kept;
        if (failed)
            return trouble(t, e, rc, "make the folder of", err);
    }
    return 0;
}

static int make_empty(const struct tree *t, const struct brg_entry *e, struct brg_error *err)
{
    struct timespec times[2];
    int fd = openat(t->root_fd, inside(t, e), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                    file_mode(e));
    if (fd < 0)
        return trouble(t, e, -errno, "make", err);
    entry_times(e, times);
    int rc = futimens(fd, times) ? -errno : 0;
    close(fd);
    return rc ? trouble(t, e, rc, "set the times of", err) : 0;
}

static int make_link(const struct tree *t, const struct brg_entry *e, struct brg_error *err)
{
    char text[PATH_MAX];
    struct timespec times[2];
    if (tree_link_text(t->index, e, text, sizeof text))
        return 0;
    if (symlinkat(text, t->root_fd, inside(t, e)))
        return trouble(t, e, -errno, "make the link", err);
    entry_times(e, times);
    utimensat(t->root_fd, inside(t, e), times, AT_SYMLINK_NOFOLLOW); /* not worth failing for */
    return 0;
}

static int is_staged(const struct brg_entry *e)
{
    return e->kind == BRG_SYMLINK || (e->kind == BRG_FILE && e->content != BRG_NONE);
}

static int make_skeleton(struct tree *t, struct brg_error *err)
{
    const struct brg_entry *entries = brg_entries(t->index);
    char made[PATH_MAX] = "";
    int rc = 0;
    for (uint32_t i = 0; i < t->index->n_entries && !rc; i++) {
        const struct brg_entry *e = &entries[i];
        if (!is_staged(e))
            continue;
        rc = make_parents(t, e, made, sizeof made, err);
        if (!rc && e->kind == BRG_SYMLINK)
            rc = make_link(t, e, err);
    }
    for (uint32_t c = 0; c < t->index->n_contents; c++)
        for (uint32_t f = t->first[c]; f < t->first[c + 1] && !rc; f++)
            if (brg_contents(t->index)[c].size == 0 && t->files[f].same_as == BRG_NONE)
                rc = make_empty(t, &entries[t->files[f].entry], err);
    return rc;
}

/* ---- files by content ---- */

struct source { /* of one file, to find those that are the same one */
    uint64_t dev, ino;
    uint32_t file;
};

static int source_compare(const void *a, const void *b)
{
    const struct source *x = a, *y = b;
    if (x->dev != y->dev)
        return x->dev < y->dev ? -1 : 1;
    if (x->ino != y->ino)
        return x->ino < y->ino ? -1 : 1;
    return x->file < y->file ? -1 : x->file > y->file;
}

/* Among the files of one content; ino 0 is what was never a file (Brigade's own parts). */
static int find_hard_links(struct tree *t, uint32_t first, uint32_t end)
{
    uint32_t n = end - first;
    if (n < 2)
        return 0;
    struct source *sources = malloc(n * sizeof *sources);
    if (!sources)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++) {
        const struct brg_entry *e = &brg_entries(t->index)[t->files[first + i].entry];
        sources[i] = (struct source){.dev = e->dev, .ino = e->ino, .file = first + i};
    }
    qsort(sources, n, sizeof *sources, source_compare);
    for (uint32_t i = 1, leader = 0; i < n; i++) {
        if (sources[i].ino && sources[i].ino == sources[leader].ino &&
            sources[i].dev == sources[leader].dev)
            t->files[sources[i].file].same_as = sources[leader].file;
        else
            leader = i;
    }
    free(sources);
    return 0;
}

static int list_files(struct tree *t)
{
    const struct brg_index *x = t->index;
    int rc = 0;
    uint32_t *entries = malloc(((size_t)x->n_entries + 1) * sizeof *entries);
    t->first = malloc(((size_t)x->n_contents + 1) * sizeof *t->first);
    if (entries && t->first) {
        brg_content_entries(x, t->first, entries);
        t->files = calloc((size_t)t->first[x->n_contents] + 1, sizeof *t->files);
    }
    if (!t->files)
        rc = -ENOMEM;
    for (uint32_t c = 0; c < x->n_contents && !rc; c++) {
        for (uint32_t f = t->first[c]; f < t->first[c + 1]; f++) {
            t->files[f].entry = entries[f];
            t->files[f].same_as = BRG_NONE;
            atomic_init(&t->files[f].missing, brg_contents(x)[c].size);
        }
        rc = find_hard_links(t, t->first[c], t->first[c + 1]);
    }
    free(entries);
    return rc;
}

int tree_create(struct tree *t, int staged_fd, const void *head, struct brg_error *err)
{
    memset(t, 0, sizeof *t);
    t->index = brg_head_index(head);
    t->block_bytes = ((const struct brg_image_header *)head)->block_bytes;
    t->root_fd = -1;
    if (list_files(t))
        return brg_error_set(err, -ENOMEM, "no memory for the list of %u files",
                             t->index->n_entries);
    if (mkdirat(staged_fd, "root", 0700) == 0)
        t->root_fd = openat(staged_fd, "root", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (t->root_fd < 0)
        return brg_error_system(err, -errno, "cannot make the folder root in the node's memory");
    return make_skeleton(t, err);
}

/* ---- bytes ---- */

static int open_for(const struct tree *t, const struct brg_entry *e, int whole)
{
    /* A file in several pieces is opened several times, so it stays writable until the last. */
    mode_t mode = file_mode(e) | (whole ? 0 : 0200);
    return openat(t->root_fd, inside(t, e), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, mode);
}

static int write_piece(struct tree *t, struct tree_file *f, const void *bytes, size_t n,
                       uint64_t offset, int whole, struct brg_error *err)
{
    const struct brg_entry *e = &brg_entries(t->index)[f->entry];
    struct timespec times[2];
    int fd = open_for(t, e, whole), rc = 0;
    if (fd < 0)
        return trouble(t, e, -errno, "make", err);
    if (fault_at(FAULT_WRITE, atomic_load(&t->written) + n))
        rc = -ENOSPC;
    else
        rc = brg_io_pwrite(fd, bytes, n, offset, NULL);
    if (!rc && atomic_fetch_sub(&f->missing, n) == n) {
        entry_times(e, times);
        if ((!whole && fchmod(fd, file_mode(e))) || futimens(fd, times))
            rc = -errno;
    }
    close(fd);
    if (rc)
        return trouble(t, e, rc, "write", err);
    atomic_fetch_add(&t->written, n);
    return 0;
}

int tree_take_block(struct tree *t, uint32_t block, const void *raw, size_t bytes,
                    struct brg_error *err)
{
    uint64_t start = (uint64_t)block * t->block_bytes, end = start + bytes;
    uint32_t first, stop;
    brg_contents_in(t->index, start, end, &first, &stop);
    for (uint32_t c = first; c < stop; c++) {
        const struct brg_content *content = &brg_contents(t->index)[c];
        uint64_t from = content->raw_off > start ? content->raw_off : start;
        uint64_t to =
            content->raw_off + content->size < end ? content->raw_off + content->size : end;
        if (to <= from)
            continue;
        for (uint32_t f = t->first[c]; f < t->first[c + 1]; f++) {
            if (t->files[f].same_as != BRG_NONE)
                continue;
            int rc = write_piece(t, &t->files[f], (const char *)raw + (from - start), to - from,
                                 from - content->raw_off, to - from == content->size, err);
            if (rc)
                return rc;
        }
    }
    return 0;
}

static int finish_files(struct tree *t, struct brg_error *err)
{
    const struct brg_entry *entries = brg_entries(t->index);
    for (uint32_t f = 0; f < t->first[t->index->n_contents]; f++) {
        const struct brg_entry *e = &entries[t->files[f].entry];
        uint32_t same = t->files[f].same_as;
        if (same != BRG_NONE) {
            if (linkat(t->root_fd, inside(t, &entries[t->files[same].entry]), t->root_fd,
                       inside(t, e), 0))
                return trouble(t, e, -errno, "make the hard link", err);
        } else if (atomic_load(&t->files[f].missing))
            return brg_error_set(err, -EBADMSG, "%s is incomplete in the image",
                                 brg_string(t->index, e->path));
    }
    return 0;
}

int tree_finish(struct tree *t, struct brg_error *err)
{
    const struct brg_entry *entries = brg_entries(t->index);
    int rc = finish_files(t, err);
    for (uint32_t i = 0; i < t->index->n_entries && !rc; i++) {
        struct timespec times[2];
        if (entries[i].kind != BRG_DIR)
            continue;
        entry_times(&entries[i], times);
        /* Directories that hold nothing staged are not there: ENOENT. */
        if (utimensat(t->root_fd, inside(t, &entries[i]), times, 0) == 0)
            rc = fchmodat(t->root_fd, inside(t, &entries[i]), (entries[i].mode & 0777) | 0700, 0)
                     ? trouble(t, &entries[i], -errno, "set the mode of", err)
                     : 0;
    }
    return rc;
}

void tree_destroy(struct tree *t)
{
    if (t->root_fd >= 0)
        close(t->root_fd);
    free(t->files);
    free(t->first);
    memset(t, 0, sizeof *t);
    t->root_fd = -1;
}
