/* Layers and mounts. See covering.h. */
#include "view/covering.h"
#include "view/cover.h"
#include "view/look.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#define OPAQUE "user.overlay.opaque"

static const char *path_of(const struct covering *c, uint32_t i)
{
    return brg_string(c->index, brg_entries(c->index)[i].path);
}

/* `folder` with an entry's path behind it. */
static int place(const struct covering *c, const char *folder, uint32_t i, char *buf)
{
    struct text t = text_in(buf, PATH_MAX);
    text_add(&t, folder);
    text_add(&t, path_of(c, i));
    return t.full ? -ENAMETOOLONG : 0;
}

static void times_of(const struct brg_entry *e, struct timespec times[2])
{
    times[0] = look_time(e->atime_ns);
    times[1] = look_time(e->mtime_ns);
}

/* Makes `path` and the folders above it. */
static int make_folders(char *path)
{
    if (mkdir(path, 0700) == 0 || errno == EEXIST)
        return 0;
    for (char *p = path + 1; errno == ENOENT && *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        int failed = mkdir(path, 0700) && errno != EEXIST;
        *p = '/';
        if (failed)
            return -errno;
        errno = ENOENT;
    }
    return mkdir(path, 0700) == 0 || errno == EEXIST ? 0 : -errno;
}

static int make_link(const struct covering *c, const struct brg_entry *e, const char *path)
{
    struct timespec times[2];
    times_of(e, times);
    if (symlink(brg_string(c->index, e->target), path))
        return -errno;
    utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW); /* not worth failing for */
    return 0;
}

static int make_one(const struct covering *c, uint32_t i, int *whiteouts)
{
    const struct brg_entry *entries = brg_entries(c->index), *e = &entries[i];
    char path[PATH_MAX];
    int err = place(c, c->layer, i, path);
    if (err < 0)
        return err;
    switch (e->kind) {
    case BRG_DIR: return c->marks[i] & COVER_MADE ? make_folders(path) : 0;
    case BRG_SYMLINK: return make_link(c, e, path);
    case BRG_ABSENT: break;
    default: return 0;
    }
    if (!*whiteouts || entries[e->parent].kind != BRG_DIR)
        return 0;
    if (mknod(path, S_IFCHR, makedev(0, 0)) == 0)
        return 0;
    *whiteouts = 0; /* the original says so, too */
    return errno == EPERM || errno == EACCES ? 0 : -errno;
}

/* Says that nothing of the original shows through a folder: where its files are staged, there;
 * elsewhere the layer has it alone. */
static void mark_complete(const struct covering *c, uint32_t i, const char *in_layer)
{
    char staged[PATH_MAX];
    if (!(c->marks[i] & COVER_COMPLETE) || place(c, c->staged, i, staged) < 0)
        return;
    if (setxattr(staged, OPAQUE, "y", 1, 0) && errno == ENOENT)
        setxattr(in_layer, OPAQUE, "y", 1, 0);
}

int covering_make_layer(const struct covering *c)
{
    const struct brg_entry *entries = brg_entries(c->index);
    int whiteouts = 1;
    for (uint32_t i = 0; i < c->index->n_entries; i++) {
        int err = c->marks[i] & COVER_INSIDE ? make_one(c, i, &whiteouts) : 0;
        if (err < 0)
            return err;
    }
    for (uint32_t i = c->index->n_entries; i-- > 0;) {
        char path[PATH_MAX];
        struct timespec times[2];
        if (!(c->marks[i] & COVER_MADE) || place(c, c->layer, i, path) < 0)
            continue;
        times_of(&entries[i], times);
        mark_complete(c, i, path);
        if (chmod(path, (entries[i].mode & 0777) | 0700) || utimensat(AT_FDCWD, path, times, 0))
            return -errno;
    }
    return 0;
}

/* ---- mounts: by descriptors, so that no character of a path means anything ---- */

static int open_path(const char *path)
{
    return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int mount_overlay(const int *layers, int n, const char *target)
{
    char options[160];
    struct text t = text_in(options, sizeof options);
    text_add(&t, "lowerdir=");
    for (int i = 0; i < n; i++) {
        text_add(&t, i ? ":/proc/self/fd/" : "/proc/self/fd/");
        text_number(&t, (uint64_t)layers[i], 10);
    }
    size_t plain = t.len;
    text_add(&t, ",userxattr");
    if (mount("brigade", target, "overlay", MS_RDONLY, options) == 0)
        return 0;
    if (errno != EINVAL)
        return -errno;
    options[plain] = '\0'; /* before Linux 5.11, where a distribution allows it all the same */
    return mount("brigade", target, "overlay", MS_RDONLY, options) == 0 ? 0 : -errno;
}

static int mount_layers(const struct covering *c, uint32_t top)
{
    char path[PATH_MAX];
    int layers[3], n = 0, err = 0;
    for (int i = 0; i < 3; i++) {
        const char *folder = i == 0 ? c->layer : i == 1 ? c->staged : "";
        if (i == 2 && (c->marks[top] & COVER_COMPLETE) && n > 1)
            continue;
        err = place(c, folder, top, path);
        int fd = err < 0 ? -1 : open_path(path);
        if (fd >= 0)
            layers[n++] = fd;
        else if (i != 1) /* nothing of this folder need be staged */
            err = err < 0 ? err : -errno;
        if (err < 0)
            break;
    }
    if (err == 0)
        err = mount_overlay(layers, n, path_of(c, top));
    while (n > 0)
        close(layers[--n]);
    return err;
}

static int below(const struct covering *c, uint32_t hole, uint32_t top)
{
    const struct brg_entry *entries = brg_entries(c->index);
    uint32_t i = entries[hole].parent;
    while (i != BRG_NONE && i != top)
        i = c->marks[i] & COVER_TOP ? BRG_NONE : entries[i].parent;
    return i == top;
}

/* Opens the originals of the holes of a cover before it hides them. Returns how many. */
static int open_holes(const struct covering *c, uint32_t top, int *fds, uint32_t *holes)
{
    int n = 0;
    for (uint32_t i = top; i < c->index->n_entries && n < COVER_HOLES; i++) {
        if (!(c->marks[i] & COVER_HOLE) || !below(c, i, top))
            continue;
        fds[n] = open_path(path_of(c, i));
        holes[n] = i;
        n += fds[n] >= 0;
    }
    return n;
}

static int mount_hole(int fd, const char *target)
{
    char from[40];
    struct text t = text_in(from, sizeof from);
    text_add(&t, "/proc/self/fd/");
    text_number(&t, (uint64_t)fd, 10);
    return mount(from, target, NULL, MS_BIND | MS_REC, NULL) == 0 ? 0 : -errno;
}

static int mount_cover(const struct covering *c, uint32_t top)
{
    int fds[COVER_HOLES];
    uint32_t holes[COVER_HOLES];
    int n = open_holes(c, top, fds, holes);
    int err = mount_layers(c, top), mounted = err == 0, done = 0;
    for (int i = 0; i < n; i++) {
        if (err == 0) {
            err = mount_hole(fds[i], path_of(c, holes[i]));
            done += err == 0;
        }
        close(fds[i]);
    }
    if (err < 0 && mounted) { /* all or nothing: what is writable stays writable */
        while (done > 0)
            umount2(path_of(c, holes[--done]), MNT_DETACH);
        umount2(path_of(c, top), MNT_DETACH);
    }
    return err;
}

void covering_mount(struct covering *c)
{
    for (uint32_t i = 0; i < c->index->n_entries; i++) {
        if (!(c->marks[i] & COVER_TOP))
            continue;
        int err = mount_cover(c, i);
        if (err < 0)
            c->refused = -err;
        else
            c->mounted++;
    }
}
