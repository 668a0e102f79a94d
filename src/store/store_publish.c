/* From a temporary file to one under its name, or to nothing.
 *
 * At any moment there is the old file or the new one, whole, and a section of NAME.sums that
 * describes it: NAME.sums, with the sections of both, goes first. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "world/fault.h"
#include "store/store_inside.h"
#include "store/store_io.h"

/* Only where it is another, as it is a request to a shared file system. 1: it was; 0; -errno. */
static int set_mode(int fd, const struct stat *now, int32_t mode)
{
    if ((int32_t)(now->st_mode & 07777) == mode)
        return 0;
    return fchmod(fd, (mode_t)mode) ? -errno : 1;
}

/* Rank 0's descriptor of the data: of a new file the one that it was made with, as each opening is
 * a request to a shared file system. Or -errno. close_data ends it. */
static int open_data(const struct io_store *s)
{
    if (s->fd >= 0)
        return s->fd;
    if (s->token.lock >= 0 && !store_as_it_lies(&s->token))
        return s->token.lock;
    return store_io_open(s->token.temporary, O_RDWR, 0);
}

static void close_data(const struct io_store *s, int fd)
{
    if (fd != s->fd && fd != s->token.lock)
        close(fd);
}

/* Size and permissions as they will stay; *changed: they must be synced. */
static int finish_data(struct io_store *s, uint64_t size, uint64_t *inode, int *changed)
{
    struct stat st;
    int in_place = store_as_it_lies(&s->token), fd = open_data(s);
    if (fd < 0)
        return fd;
    int rc = store_io_stat(fd, NULL, &st);
    if (!rc && (uint64_t)st.st_size != size) {
        rc = store_io_resize(fd, size);
        *changed = 1;
    }
    int set = rc || in_place ? 0 : set_mode(fd, &st, s->token.mode);
    *changed |= set > 0;
    rc = set < 0 ? set : rc;
    close_data(s, fd);
    *inode = (uint64_t)st.st_ino;
    return rc;
}

struct old_sums {
    struct sums_file *file;
    uint32_t section;
};

static int get_old(void *context, uint64_t first, size_t n, uint64_t *sums)
{
    struct old_sums *old = context;
    return sums_file_get(old->file, old->section, first, n, sums);
}

/* The sections of `old` that may describe the file that is replaced: its own where one is known, or
 * else (it was copied from elsewhere) all of its size. */
static uint32_t keep_sections(const struct stat *replaced, struct sums_file *file,
                              struct old_sums old[SUMS_SECTIONS])
{
    uint64_t size = (uint64_t)replaced->st_size;
    uint32_t n = 0;
    int own = store_own_section(file, (uint64_t)replaced->st_ino, size);
    for (uint32_t i = 0; i < file->n && n < SUMS_SECTIONS - 1; i++)
        if (own < 0 ? file->section[i].size == size : (uint32_t)own == i)
            old[n++] = (struct old_sums){file, i};
    return n;
}

/* Those of a file that is changed as it lies are, too, where one section of so many takes the same
 * room: a descriptor, or -1. That it is a file of checksums was seen when the file was opened. */
static int open_to_change(const struct io_store *s, const char *path, uint64_t n_blocks)
{
    struct stat st;
    uint64_t bytes = sizeof(struct sums_head) + sizeof(struct sums_section) + 8 * n_blocks;
    int fd = store_as_it_lies(&s->token) ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0 || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == bytes))
        return fd;
    close(fd);
    return -1;
}

static int make_sums(const struct io_store *s, const char *path)
{
    struct stat made;
    int fd = store_io_open(path, O_RDWR | O_CREAT | O_TRUNC, (mode_t)s->token.mode);
    /* before it is written to: what the system knows of a file just made need not be asked for */
    int rc = fd < 0 ? fd : fstat(fd, &made) ? -errno : 0;
    if (!rc)
        (void)store_give(fd, &s->token); /* it was given to the data */
    rc = rc ? rc : set_mode(fd, &made, s->token.mode);
    if (rc < 0 && fd >= 0)
        close(fd);
    return rc < 0 ? rc : fd;
}

/* The file of checksums that will be published, on its way to the disk but not synced: its
 * descriptor, or -errno. */
static int write_sums(struct io_store *s, uint64_t size, uint64_t inode)
{
    char now[STORE_NAME_BYTES], next[STORE_NAME_BYTES];
    struct sums_section sections[SUMS_SECTIONS] = {
        {.id = s->token.id, .size = size, .inode = inode, .block_bytes = s->token.block_bytes}};
    sums_source *sources[SUMS_SECTIONS] = {sums_get};
    struct sums working;
    struct sums_file file = {.fd = -1};
    struct old_sums old[SUMS_SECTIONS];
    void *contexts[SUMS_SECTIONS] = {&working};
    sections[0].n_blocks = store_n_blocks(&s->token, size);
    store_name(now, s->token.path, ".sums");
    store_name(next, s->token.base, ".sums");
    sums_open(&working, s->page, s->working, s->token.block_bytes);
    struct stat replaced;
    int in_place = store_as_it_lies(&s->token);
    int there = in_place ? -ENOENT : store_io_stat(-1, s->token.path, &replaced);
    s->name_is_free = there == -ENOENT;
    int keeps = there == 0 && sums_file_open(&file, now, NULL) == 0;
    uint32_t n = keeps ? keep_sections(&replaced, &file, old) : 0;
    for (uint32_t i = 0; i < n; i++) {
        sections[i + 1] = file.section[old[i].section];
        sources[i + 1] = get_old;
        contexts[i + 1] = &old[i];
    }
    int fd = open_to_change(s, now, sections[0].n_blocks);
    s->sums_are_there = fd >= 0;
    fd = s->sums_are_there ? fd : make_sums(s, next);
    int rc = fd < 0 ? fd : sums_file_write(fd, sections, n + 1, sources, contexts);
    if (rc && fd >= 0)
        close(fd);
    sums_close(&working);
    sums_file_close(&file);
    return rc ? rc : fd;
}

int store_remove_sums(const char *path)
{
    char sums[STORE_NAME_BYTES];
    struct sums_file file;
    store_name(sums, path, ".sums");
    int there = sums_file_open(&file, sums, NULL);
    if (there == 0)
        sums_file_close(&file);
    return (there == 0 || there == -EBADMSG) && unlink(sums) ? -errno : 0;
}

/* Bytes before checksums: where a journal takes both, the second sync finds little to do. */
static int sync_both(struct io_store *s, int changed, int sums, struct brg_error *err)
{
    int own = store_descriptor(s), none = own < 0 && (changed || s->written);
    int fd = none ? open_data(s) : own;
    int rc = fd < -1 ? fd : fd >= 0 ? store_io_sync(fd) : 0;
    if (none && fd >= 0)
        close_data(s, fd);
    if (rc)
        return store_failed(err, rc, s->token.path, -1, "sync");
    store_synced(s);
    rc = sums >= 0 ? store_io_sync(sums) : 0;
    return rc ? store_failed(err, rc, s->token.path, -1, "sync the checksums of") : 0;
}

int store_secure(struct io_store *s, uint64_t size, struct brg_error *err)
{
    uint64_t inode = 0;
    int changed = 0, sums = -1, rc = 0;
    io_fault_step();
    if (s->rank == 0) {
        rc = finish_data(s, size, &inode, &changed);
        if (rc)
            return store_failed(err, rc, s->token.path, -1, "finish");
        io_fault_step();
        sums = s->checksums ? write_sums(s, size, inode) : -1;
        if (s->checksums && sums < 0)
            return store_failed(err, sums, s->token.path, -1, "write the checksums of");
        if (s->sync && sums >= 0)
            (void)sync_file_range(sums, 0, 0, SYNC_FILE_RANGE_WRITE);
    }
    io_fault_step();
    rc = s->sync ? sync_both(s, changed, sums, err) : 0;
    if (sums >= 0)
        close(sums);
    s->secured = rc == 0;
    return rc ? rc : store_let_go(s, err);
}

static int publish_sums(struct io_store *s)
{
    char now[STORE_NAME_BYTES], next[STORE_NAME_BYTES];
    if (!s->checksums)
        return store_remove_sums(s->token.path);
    if (s->sums_are_there)
        return 0;
    store_name(now, s->token.path, ".sums");
    store_name(next, s->token.base, ".sums");
    return store_io_rename(next, now, 1);
}

int store_enter_folder(const struct io_store *s, int *folder, struct brg_error *err)
{
    int fd = s->sync ? brg_io_open_folder_of(s->token.path) : -1;
    if (s->sync && fd < 0)
        return store_failed(err, fd, s->token.path, -1, "open, to sync it, the folder of");
    *folder = fd;
    return 0;
}

int store_leave_folder(const struct io_store *s, int folder, int rc, struct brg_error *err)
{
    if (folder < 0)
        return rc;
    if (rc) {
        close(folder);
        return rc;
    }
    rc = brg_io_sync_folder(folder);
    return rc ? store_failed(err, rc, s->token.path, -1, "sync the folder of the published") : 0;
}

/* Where the name must be free, another job's file may have it by now: its checksums are not removed
 * before the name is ours. */
static int publish_names(struct io_store *s, struct brg_error *err)
{
    int is_new = (s->token.flags & BRG_EXCLUSIVE) != 0, sums_last = is_new && !s->checksums;
    int rc = sums_last ? 0 : publish_sums(s);
    if (!rc) {
        io_fault_step();
        if (!store_as_it_lies(&s->token))
            rc = store_io_rename(s->token.temporary, s->token.path, !is_new);
        if (rc)
            return store_failed(err, rc, s->token.path, -1, "publish");
        s->published = 1;
    }
    rc = sums_last ? publish_sums(s) : rc;
    return rc ? store_failed(err, rc, s->token.path, -1, "publish the checksums of") : 0;
}

int store_publish(struct io_store *s, uint64_t size, struct brg_error *err)
{
    char parts[STORE_PATH + PARTS_FOLDER] = "";
    int folder = -1, rc = 0;
    if (s->token.layout == IO_PARTS)
        return store_publish_parts(s, size, err);
    io_fault_step();
    if (!s->secured)
        rc = store_secure(s, size, err);
    if (rc)
        return rc;
    if (!store_as_it_lies(&s->token) && !s->name_is_free)
        store_parts_of(parts, s->token.path);
    io_fault_step();
    if (!s->sums_are_there) /* or else no name changes */
        rc = store_enter_folder(s, &folder, err);
    rc = rc ? rc : publish_names(s, err);
    io_fault_step();
    rc = store_leave_folder(s, folder, rc, err);
    io_fault_step();
    if (s->published)
        store_remove_rest(s);
    if (!rc && parts[0])
        parts_remove(parts);
    return rc;
}

void store_discard(struct io_store *s)
{
    if (s->rank == 0 && s->token.base[0] && !s->published)
        store_remove_all(&s->token);
}
