/* Opening files; their size; what is on the disk. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "shmemio/inside.h"
#include "world/fault.h"

int file_check(const struct shmem_file *f, struct brg_error *err)
{
    return f ? 0 : brg_error_set(err, -WRONG_FILE, "SHMEM_FILE_NULL is no file");
}

void file_name_path(const struct shmem_file *f, struct brg_error *failure)
{
    if (failure->code && !failure->path[0])
        snprintf(failure->path, sizeof failure->path, "%s", f->token.path);
}

int file_agree(struct shmem_file *f, struct brg_error *failure)
{
    int rc = pgas_failure(f->pgas, failure);
    file_name_path(f, failure);
    return rc;
}

void file_keep_failure(struct shmem_file *f, const struct brg_error *failure)
{
    if (failure->code && !f->failure.code && f->hints.publish)
        f->failure = *failure;
}

int file_end_stream(struct shmem_file *f, struct brg_error *err)
{
    int rc = store_end_stream(f->store, err);
    return rc ? rc : store_end_call(f->store, 0, err);
}

int file_show(struct shmem_file *f, struct brg_error *failure)
{
    if (f->pgas->n_nodes == 1)
        return 0;
    if (!failure->code)
        drain_show(f->drain, failure);
    int rc = file_agree(f, failure);
    if (!rc)
        f->behind = (struct hull){0, 0};
    return rc;
}

/* ---- opening ---- */

static int check_amode(const char *path, int amode, struct brg_error *err)
{
    int ways = amode & (SHMEM_MODE_RDONLY | SHMEM_MODE_WRONLY | SHMEM_MODE_RDWR);
    if (!path)
        return brg_error_set(err, -EINVAL, "cannot open a file without a name: path is NULL");
    if (amode & SHMEM_MODE_SEQUENTIAL)
        return brg_error_set(err, -ENOTSUP,
                             "cannot open %s with SHMEM_MODE_SEQUENTIAL: files here "
                             "have offsets",
                             path);
    if (!ways || ways & (ways - 1) || amode & ~511 ||
        (ways == SHMEM_MODE_RDONLY && amode & (SHMEM_MODE_CREATE | SHMEM_MODE_EXCL)))
        return brg_error_set(err, -WRONG_AMODE,
                             "cannot open %s with amode %d: it takes one of SHMEM_MODE_RDONLY, "
                             "_WRONLY and _RDWR; _CREATE and _EXCL only with the last two",
                             path, amode);
    return 0;
}

/* Rank 0: as the store has it. In place, or else a new file or a copy of the one that is there. */
static unsigned store_flags(const char *path, int amode, struct io_hints *hints)
{
    unsigned flags = amode & SHMEM_MODE_CREATE ? BRG_CREATE : 0;
    if (flags && amode & SHMEM_MODE_EXCL)
        flags |= BRG_EXCLUSIVE;
    if (amode & SHMEM_MODE_RDONLY)
        hints->publish = IO_PUBLISH_NO;
    if (hints->publish == IO_PUBLISH_NO) {
        flags |= amode & SHMEM_MODE_WRONLY ? 0 : BRG_READ;
        return STORE_IN_PLACE | flags | (amode & SHMEM_MODE_RDONLY ? 0 : BRG_WRITE);
    }
    hints->update_in_place = 0;
    if (hints->publish == IO_PUBLISH_YES && !(flags & BRG_EXCLUSIVE) && access(path, F_OK) == 0)
        flags = 0;
    return flags | BRG_WRITE;
}

/* What rank 0 found out, for all. */
struct found {
    struct io_hints hints;
    struct store_token token;
    char path[STORE_PATH];
    int amode;
};

/* Rank 0. A name may be another file's when this one is closed. As long as what has it now is held,
 * no other has its number. */
static void hold(struct shmem_file *f, const char *path, struct brg_error *err)
{
    f->goes = open(path, O_PATH | O_CLOEXEC);
    if (f->goes < 0 && errno != ENOENT)
        brg_error_system(err, -errno, "cannot open %s", path);
}

/* Rank 0. What goes when it is closed is what is there: before a file that will be published, or
 * when one in place has been made. */
static void find(struct shmem_file *f, const char *path, int amode, struct found *found,
                 struct brg_error *failure)
{
    found->hints = f->hints;
    found->amode = amode;
    snprintf(found->path, sizeof found->path, "%s", path);
    unsigned flags = store_flags(path, amode, &found->hints);
    int deletes = amode & SHMEM_MODE_DELETE_ON_CLOSE, in_place = flags & STORE_IN_PLACE;
    if (deletes && !in_place)
        hold(f, path, failure);
    if (!failure->code &&
        !store_prepare(path, flags, &found->hints, NULL, &found->token, failure) && deletes &&
        in_place)
        hold(f, found->token.path, failure);
}

static int share(struct shmem_file *f, const char *path, int amode, struct brg_error *failure)
{
    struct found found;
    memset(&found, 0, sizeof found);
    if (f->pgas->rank == 0 && !failure->code)
        find(f, path, amode, &found, failure);
    int rc = pgas_failure(f->pgas, failure);
    rc = rc ? rc : f->pgas->broadcast(f->pgas, &found, sizeof found, 0, failure);
    if (rc) {
        if (f->pgas->rank == 0 && found.token.path[0])
            store_abandon(&found.token);
        return rc;
    }
    f->token = found.token;
    f->hints = found.hints;
    if (strncmp(found.path, path, sizeof found.path - 1) != 0 || found.amode != amode)
        brg_error_set(failure, -NOT_SAME,
                      "%s is opened with amode %d here, and %s with amode %d by the group's first "
                      "PE",
                      path, amode, found.path, found.amode);
    return 0;
}

static uint64_t window_bytes(const struct io_hints *hints)
{
    uint64_t bytes = 4096;
    while (bytes * 2 <= hints->segment_bytes)
        bytes *= 2;
    return bytes;
}

void file_destroy(struct shmem_file *f, int abandon)
{
    if (f->windows)
        group_windows_close(f->group, f->windows);
    drain_close(f->drain);
    if (abandon && f->pgas && f->pgas->rank == 0) {
        if (f->store)
            store_discard(f->store);
        else
            store_abandon(&f->token);
    }
    if (f->store)
        store_close(f->store);
    view_drop(f);
    if (f->goes >= 0)
        close(f->goes);
    if (f->group)
        group_close(f->group);
    free(f);
}

/* What rank 0 has copied from the file that is there, ranks of other nodes read and write over. */
static void show_copy(struct shmem_file *f, struct brg_error *failure)
{
    int copied = f->hints.publish && !(f->token.flags & BRG_CREATE);
    if (copied && f->pgas->rank == 0 && f->pgas->n_nodes > 1)
        store_show(f->store, failure);
}

static int open_file(struct shmem_file *f, SHMEM_Comm comm, const char *path, int amode,
                     SHMEM_Info info, struct brg_error *failure)
{
    struct brg_error err = NO_FAILURE;
    hints_default(&f->hints);
    if (!check_amode(path, amode, failure))
        info_read(info, path, &f->hints, failure);
    int rc = group_open(comm, &f->hints, &f->group, &err);
    if (rc) {
        *failure = err;
        return rc;
    }
    f->pgas = f->group->pgas;
    f->amode = amode;
    io_fault_start(f->pgas->rank);
    rc = share(f, path, amode, failure);
    if (rc)
        return rc;
    f->size = f->token.flags & BRG_CREATE && f->hints.publish ? 0 : f->token.size;
    if (!failure->code &&
        !store_open(&f->token, &f->hints, f->pgas->rank, NULL, &f->store, failure) &&
        !drain_open(f->store, &f->hints, &f->drain, failure) && !view_start(f, failure))
        show_copy(f, failure);
    if (!failure->code && amode & SHMEM_MODE_APPEND)
        f->position = f->size;
    rc = pgas_failure(f->pgas, failure);
    return rc ? rc : group_windows_open(f->group, window_bytes(&f->hints), &f->windows, failure);
}

int SHMEM_File_open(SHMEM_Comm comm, const char *path, int amode, SHMEM_Info info, SHMEM_File *file)
{
    struct brg_error failure = NO_FAILURE;
    struct shmem_file *f = calloc(1, sizeof *f);
    if (!f)
        return shmemio_refuse(-ENOMEM, "no memory for a file");
    f->goes = -1;
    int rc = open_file(f, comm, path, amode, info, &failure);
    if (rc) {
        if (!f->token.path[0] && path)
            snprintf(f->token.path, sizeof f->token.path, "%s", path);
        file_name_path(f, &failure);
        file_destroy(f, 1);
        return shmemio_end(&failure);
    }
    *file = f;
    return SHMEM_SUCCESS;
}

/* ---- size ---- */

int SHMEM_File_get_size(SHMEM_File f, SHMEM_Offset *bytes)
{
    struct brg_error failure = NO_FAILURE;
    uint64_t there = 0;
    if (file_check(f, &failure) || (!f->hints.publish && store_size(f->store, &there, &failure)))
        return shmemio_end(&failure);
    f->size = there > f->size ? there : f->size;
    *bytes = (SHMEM_Offset)f->size;
    return SHMEM_SUCCESS;
}

/* The file's size is that which any PE knows: what one wrote alone, it has told to no other. */
static int check_size(struct shmem_file *f, SHMEM_Offset bytes, struct brg_error *err)
{
    int64_t v[3] = {bytes, -bytes, -(int64_t)f->size};
    int rc = f->pgas->reduce(f->pgas, PGAS_MIN, v, 3, err);
    if (rc)
        return rc;
    if (v[0] != -v[1])
        return brg_error_set(err, -NOT_SAME, "%s is given sizes of %lld and of %lld bytes",
                             f->token.path, (long long)v[0], (long long)-v[1]);
    if (bytes < 0)
        return brg_error_set(err, -EINVAL, "%s cannot have %lld bytes", f->token.path,
                             (long long)bytes);
    if (f->amode & SHMEM_MODE_RDONLY)
        return brg_error_set(err, -EROFS, "cannot set the size of %s: it is open SHMEM_MODE_RDONLY",
                             f->token.path);
    if (f->hints.publish && bytes < -v[2])
        return brg_error_set(err, -ENOTSUP,
                             "%s, which will be published, cannot become shorter: hint publish=new "
                             "begins with an empty file",
                             f->token.path);
    return 0;
}

int SHMEM_File_set_size(SHMEM_File f, SHMEM_Offset bytes)
{
    struct brg_error failure = NO_FAILURE;
    if (file_check(f, &failure))
        return shmemio_end(&failure);
    if (check_size(f, bytes, &failure))
        file_name_path(f, &failure);
    else if (!file_show(f, &failure)) { /* what arrived later would make it longer again */
        if (f->pgas->rank == 0 && !store_resize(f->store, (uint64_t)bytes, &failure) &&
            f->pgas->n_nodes > 1)
            store_show(f->store, &failure);
        if (!file_agree(f, &failure))
            f->size = (uint64_t)bytes;
    }
    file_keep_failure(f, &failure);
    return shmemio_end(&failure);
}

int SHMEM_File_sync(SHMEM_File f)
{
    struct brg_error failure = NO_FAILURE;
    if (file_check(f, &failure))
        return shmemio_end(&failure);
    int64_t size = -(int64_t)f->size;
    if (f->hints.publish)
        file_end_stream(f, &failure);
    if (!failure.code && f->amode & SHMEM_MODE_RDONLY)
        store_let_go(f->store, &failure); /* and what others wrote is looked for */
    else if (!failure.code)
        store_flush(f->store, &failure);
    if (!file_agree(f, &failure)) {
        f->behind = (struct hull){0, 0};
        if (!f->pgas->reduce(f->pgas, PGAS_MIN, &size, 1, &failure))
            f->size = (uint64_t)-size;
    }
    file_keep_failure(f, &failure);
    return shmemio_end(&failure);
}

/* ---- asking ---- */

int SHMEM_File_get_amode(SHMEM_File f, int *amode)
{
    struct brg_error failure = NO_FAILURE;
    if (!file_check(f, &failure))
        *amode = f->amode;
    return shmemio_end(&failure);
}

int SHMEM_File_get_comm(SHMEM_File f, SHMEM_Comm *comm)
{
    struct brg_error failure = NO_FAILURE;
    if (!file_check(f, &failure))
        *comm = f->group->comm;
    return shmemio_end(&failure);
}

const char *SHMEM_File_explain(SHMEM_File f)
{
    if (!f)
        return "";
    int n = snprintf(f->explained, sizeof f->explained,
                     "%s; %u ranks on %u nodes\nstripe: %llu bytes (%s)\n",
                     f->group->why[0] ? f->group->why : f->pgas->name, f->pgas->size,
                     f->pgas->n_nodes, (unsigned long long)f->token.stripe_bytes, f->token.place);
    if (n > 0 && (size_t)n < sizeof f->explained)
        onesided_explain(f->windows->onesided, f->explained + n, sizeof f->explained - (size_t)n);
    return f->explained;
}
