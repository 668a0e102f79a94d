/* What is there under a name, and a temporary file beside it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/clock.h"
#include "base/io.h"
#include "world/fault.h"
#include "store/place.h"
#include "store/store_inside.h"
#include "store/store_io.h"

#define BLOCK_USUAL (64u << 10)
#define BLOCK_LEAST 4096u

static int refuse(struct brg_error *err, int code, const char *path, const char *why)
{
    brg_error_set(err, code, "cannot open %s: %s", path, why);
    if (err)
        snprintf(err->path, sizeof err->path, "%s", path);
    return code;
}

/* `name` in a folder, or, where it is "", what has that name itself. */
static int put(char *out, const char *folder, const char *name, const char *path,
               struct brg_error *err)
{
    int n = snprintf(out, STORE_PATH, "%s%s%s", folder, *name && folder[1] ? "/" : "", name);
    return n >= STORE_PATH - 64 ? refuse(err, -ENAMETOOLONG, path, "its path is too long") : 0;
}

/* The absolute name of what is no link, wherever the process goes later. */
static int name_in_folder(const char *path, char *out, struct brg_error *err)
{
    char folder[PATH_MAX] = ".", real[PATH_MAX];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    int length = slash > path ? (int)(slash - path) : 1;
    if (!*name)
        return refuse(err, -EISDIR, path, "no file can have this name");
    if (slash && snprintf(folder, sizeof folder, "%.*s", length, path) >= (int)sizeof folder)
        return refuse(err, -ENAMETOOLONG, path, "no file can have this name");
    if (!realpath(folder, real))
        return store_failed(err, -errno, path, -1, "open");
    return put(out, real, name, path, err);
}

/* The same of what is there, links followed. */
static int name_of_found(const char *path, char *out, struct brg_error *err)
{
    char real[PATH_MAX];
    if (!realpath(path, real))
        return errno == ENOENT
                   ? refuse(err, -ENOENT, path, "it is a symbolic link that leads to nothing")
                   : store_failed(err, -errno, path, -1, "open");
    return put(out, real, "", path, err);
}

/* Its name in out and 0 with *st filled (st_nlink 0: nothing is there), or what keeps it from being
 * used. Looking up the last part of a name is a request to a shared file system, which is made once
 * unless it is a link. */
static int look(const char *path, unsigned flags, char *out, struct stat *st, struct brg_error *err)
{
    int rc = store_io_stat_link(path, st);
    if (!rc && !S_ISREG(st->st_mode)) {
        rc = name_of_found(path, out, err);
        if (rc)
            return rc;
        rc = store_io_stat(-1, out, st);
    } else {
        int unnamed = name_in_folder(path, out, err);
        if (unnamed)
            return unnamed;
    }
    if (rc) {
        memset(st, 0, sizeof *st);
        return rc == -ENOENT && flags & BRG_CREATE ? 0 : store_failed(err, rc, out, -1, "open");
    }
    if (flags & BRG_EXCLUSIVE)
        return store_failed(err, -EEXIST, out, -1, "create");
    return S_ISREG(st->st_mode)
               ? 0
               : refuse(err, S_ISDIR(st->st_mode) ? -EISDIR : -EINVAL, out, "it is no plain file");
}

/* Once for all that is asked of it, where it is read or written in place: each opening is a request
 * to a shared file system. A file that may be written but not read is opened later. */
static int open_there(struct store_token *token, struct stat *old, struct brg_error *err)
{
    struct stat now;
    int reads = token->flags & BRG_READ && !(token->flags & BRG_WRITE);
    int fd = store_io_open(token->path, reads ? O_RDONLY : O_RDWR, 0);
    token->file = fd < 0 ? -1 : fd;
    if (fd >= 0 && fstat(fd, &now) == 0 && now.st_ino != old->st_ino)
        (void)store_io_stat(fd, NULL, old); /* replaced since it was looked at: this one counts */
    return fd < 0 && reads ? store_failed(err, fd, token->path, -1, "read") : 0;
}

/* A file that is there has the layout that it has. */
static int look_for_parts(struct store_token *token, struct brg_error *err)
{
    struct parts_head head;
    struct brg_error found;
    int rc = token->file < 0 ? parts_head_read(token->path, &head, &found)
                             : parts_head_of(token->file, token->path, &head, &found);
    token->layout = rc == -EMEDIUMTYPE ? IO_SHARED : IO_PARTS;
    if (rc == -EMEDIUMTYPE)
        return 0;
    if (rc && err)
        *err = found;
    if (rc)
        return rc;
    token->size = head.size;
    token->id = head.id;
    return !(token->flags & BRG_WRITE)
               ? 0
               : refuse(err, -EOPNOTSUPP, token->path,
                        "it is made of parts, which are not changed; `brigade file join` makes a "
                        "plain file of it");
}

/* Opening a file to read it reads its head. Where that takes so long, from a disk, the disk is far
 * away, and answers several readers as soon as one. */
#define FAR_NS 700000u

static int look_and_time(struct store_token *token, const struct stat *there, struct brg_error *err)
{
    int reads = token->file >= 0 && !(token->flags & BRG_WRITE);
    int waits = reads && place_one_stream((uint64_t)there->st_dev) &&
                store_need_not_wait(token->file, 0) == -EAGAIN;
    uint64_t began_ns = brg_clock_ns();
    int rc = look_for_parts(token, err);
    token->is_far = waits && brg_clock_ns() - began_ns > FAR_NS;
    return rc;
}

/* Nobody's file may be lost to ours because it is called NAME.sums; and ours not, at the end of all
 * the writing, because it cannot be called so. */
static int check_sums_name(const char *path, struct brg_error *err)
{
    char sums[STORE_NAME_BYTES];
    struct sums_file file;
    store_name(sums, path, ".sums");
    int rc = sums_file_open(&file, sums, NULL);
    if (rc == 0)
        sums_file_close(&file);
    if (rc == -ENAMETOOLONG)
        return refuse(err, rc, path,
                      "there is no room for .sums at the end of its name; a shorter one, or the "
                      "hint checksums=no, will do");
    if (rc != -EMEDIUMTYPE)
        return 0;
    return refuse(err, -EEXIST, path,
                  "NAME.sums beside it is no file of checksums; move that file, or use the hint "
                  "checksums=no");
}

/* What has a checksum of its own. Small, as changing a part of one means reading it all; not too
 * small for a large file, whose checksums rank 0 writes by itself: 1 MiB of them for 8 GiB. */
static uint64_t block_of(uint64_t stripe)
{
    uint64_t block = stripe / 16 > BLOCK_USUAL ? stripe / 16 : BLOCK_USUAL;
    return block < stripe ? block : stripe;
}

/* Stripes: chosen for the file that was just made, or found of the one that is there. */
static int place_of(int fd, int fresh, struct store_token *token, const struct io_hints *hints,
                    struct brg_error *err)
{
    struct place place;
    struct stat st;
    int rc = place_choose(fd, fresh, hints, &place);
    if (fstat(fd, &st) == 0) {
        token->device = (uint64_t)st.st_dev;
        token->inode = (uint64_t)st.st_ino;
        token->modified_ns = store_modified_ns(&st);
    }
    token->one_stream =
        token->flags & BRG_READ && !token->is_far && place_one_stream(token->device);
    if (rc)
        return store_failed(err, rc, token->path, -1, "choose the stripes of");
    token->stripe_bytes = place.stripe_bytes;
    token->block_bytes = block_of(place.stripe_bytes);
    token->stripe_count = place.stripe_count;
    token->lock_bytes = token->layout == IO_SHARED ? place.lock_bytes : 0;
    token->reserves = place.reserves;
    snprintf(token->place, sizeof token->place, "%s", place.text);
    return 0;
}

static int find_place(struct store_token *token, const struct io_hints *hints,
                      struct brg_error *err)
{
    if (!store_as_it_lies(token))
        return place_of(token->lock, 1, token, hints, err);
    if (token->file >= 0)
        return place_of(token->file, 0, token, hints, err);
    int fd = store_io_open(token->path, token->flags & BRG_READ ? O_RDONLY : O_WRONLY, 0);
    int rc = fd < 0 ? store_failed(err, fd, token->path, -1, "open")
                    : place_of(fd, 0, token, hints, err);
    if (fd >= 0)
        close(fd);
    return rc;
}

/* What stays of the old file keeps its old sums, so that damage which is in it already will still
 * be found: and the new one has blocks of the same size, where they fit its stripes. */
static int seed_sums(struct store_token *token, const struct stat *old, struct sums *sums)
{
    char path[STORE_NAME_BYTES];
    struct sums_file file = {.fd = -1};
    int section = -1;
    store_name(path, token->path, ".sums");
    if (sums_file_open(&file, path, NULL) == 0)
        section = store_own_section(&file, old->st_ino, token->size);
    uint64_t block = section >= 0 ? file.section[section].block_bytes : 0;
    if (block < BLOCK_LEAST || token->stripe_bytes % block)
        section = -1;
    else
        sums->block_bytes = token->block_bytes = block;
    int rc = sums_seed(sums, &file, section, token->size);
    sums_file_close(&file);
    return rc;
}

/* The pad of checksums. */
static int make_sums(struct store_token *token, const struct stat *old, char *page,
                     struct brg_error *err)
{
    char path[STORE_NAME_BYTES];
    struct sums sums;
    store_name(path, token->base, ".blocks");
    sums_open(&sums, page, path, token->block_bytes);
    int rc = page ? 0 : sums_pad_make(&sums.pad);
    if (!rc && !(token->flags & BRG_CREATE))
        rc = seed_sums(token, old, &sums);
    sums_close(&sums);
    return rc ? store_failed(err, rc, token->path, -1, "keep checksums of") : 0;
}

static int make_parts(struct store_token *token, struct brg_error *err)
{
    char folder[STORE_NAME_BYTES];
    store_parts_folder(folder, token->base);
    /* whoever may read the file may look into the folder */
    int rc = mkdir(folder, 0700) ? -errno : 0;
    mode_t mode = 0700 | ((mode_t)token->mode & 0044) | ((mode_t)token->mode & 0044) >> 2;
    int fd = rc ? -1 : open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!rc && (fd < 0 || store_give(fd, token) || fchmod(fd, mode)))
        rc = -errno;
    if (fd >= 0)
        close(fd);
    return rc ? store_failed(err, rc, token->path, -1, "make a folder for the parts of") : 0;
}

static int make_files(struct store_token *token, const struct io_hints *hints,
                      const struct stat *old, char *page, struct brg_error *err)
{
    int rc = 0;
    if (token->layout == IO_PARTS)
        return make_parts(token, err);
    if (hints->checksums)
        rc = make_sums(token, old, hints->async ? NULL : page, err);
    io_fault_step();
    int copies = !(token->flags & BRG_CREATE) && !hints->update_in_place;
    return !rc && copies ? store_copy_old(token, err) : rc;
}

/* The file is there when this is done, with what it held. */
static int prepare_in_place(struct store_token *token, const struct io_hints *hints, int is_there,
                            struct brg_error *err)
{
    token->layout = is_there ? token->layout : IO_SHARED;
    int rc = token->flags & BRG_WRITE ? store_remove_sums(token->path) : 0;
    if (rc)
        return store_failed(err, rc, token->path, -1, "remove the old checksums of");
    if (is_there)
        return find_place(token, hints, err);
    int exclusive = token->flags & BRG_EXCLUSIVE ? O_EXCL : 0;
    int fd = store_io_open(token->path, store_made_flags(token, hints) | exclusive, 0666);
    if (fd < 0)
        return store_failed(err, fd, token->path, -1, "create");
    rc = place_of(fd, 1, token, hints, err);
    if (rc)
        unlink(token->path);
    close(fd);
    return rc;
}

static int prepare(const char *path, unsigned flags, const struct io_hints *hints, char *page,
                   struct store_token *token, struct brg_error *err)
{
    struct stat old;
    int rc = look(path, flags, token->path, &old, err);
    if (rc)
        return rc;
    int keeps = !(flags & BRG_CREATE) || flags & STORE_IN_PLACE;
    int as_it_lies = flags & (STORE_IN_PLACE | BRG_READ) || (keeps && hints->update_in_place);
    if (old.st_nlink && as_it_lies)
        rc = open_there(token, &old, err);
    token->size = (uint64_t)old.st_size;
    rc = !rc && old.st_nlink && token->file < 0 ? store_may_use(token->path, flags, err) : rc;
    if (rc)
        return rc;
    rc = old.st_nlink && keeps ? look_and_time(token, &old, err) : 0;
    if (rc)
        return rc;
    memcpy(token->temporary, token->path, sizeof token->path);
    if (flags & STORE_IN_PLACE)
        return prepare_in_place(token, hints, old.st_nlink != 0, err);
    if (flags & BRG_READ)
        return find_place(token, hints, err);
    int is_free = 0;
    rc = store_make_base(token, hints, &is_free, err);
    if (rc)
        return rc;
    if (hints->checksums && token->layout == IO_SHARED && !is_free)
        rc = check_sums_name(token->path, err);
    if (!hints->update_in_place || flags & BRG_CREATE)
        memcpy(token->temporary, token->base, sizeof token->base);
    if (old.st_nlink)
        store_take_permissions(token, &old);
    rc = rc ? rc : find_place(token, hints, err);
    rc = rc ? rc : make_files(token, hints, &old, page, err);
    if (rc)
        store_abandon(token);
    return rc;
}

int store_prepare(const char *path, unsigned flags, const struct io_hints *hints, char *page,
                  struct store_token *token, struct brg_error *err)
{
    *token = (struct store_token){.flags = flags,
                                  .layout = hints->layout,
                                  .owner = (uid_t)-1,
                                  .group = (gid_t)-1,
                                  .lock = -1,
                                  .file = -1,
                                  .process = (int32_t)getpid()};
    int rc = prepare(path, flags, hints, page, token, err);
    if (rc && token->file >= 0) {
        close(token->file);
        token->file = -1;
    }
    return rc;
}

void store_abandon(const struct store_token *token)
{
    if (token->file >= 0)
        close(token->file);
    if (!token->base[0])
        return;
    store_remove_all(token);
    if (token->lock >= 0)
        close(token->lock);
}
