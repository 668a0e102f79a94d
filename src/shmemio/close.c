/* Closing files: what was written is published, or seen by others, or deleted. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "shmemio/inside.h"

/* The steps of a commit, each done by all before any begins the next (src/io/commit.c). */
static int publish(struct shmem_file *f, struct brg_error *failure)
{
    *failure = f->failure;
    if (!failure->code)
        file_end_stream(f, failure);
    int64_t v[2] = {-store_has_unsummed(f->store), -(int64_t)f->size};
    int rc = file_agree(f, failure);
    rc = rc ? rc : f->pgas->reduce(f->pgas, PGAS_MIN, v, 2, failure);
    if (rc)
        return rc;
    uint64_t size = (uint64_t)-v[1];
    store_hear_unsummed(f->store, v[0] != 0);
    store_flush(f->store, failure);
    rc = file_agree(f, failure);
    if (!rc && store_is_unsummed(f->store)) {
        store_settle(f->store, f->pgas->size, size, failure);
        rc = file_agree(f, failure);
    }
    if (!rc && f->pgas->rank == 0)
        store_publish(f->store, size, failure);
    return rc ? rc : file_agree(f, failure);
}

/* A file that is not there is no failure where `may_lack`. */
static void delete_file(const char *path, int may_lack, struct brg_error *failure)
{
    int rc = unlink(path) && !(may_lack && errno == ENOENT) ? -errno : 0;
    rc = rc ? rc : store_remove_sums(path);
    if (rc) {
        brg_error_system(failure, rc, "cannot delete %s", path);
        snprintf(failure->path, sizeof failure->path, "%s", path);
    }
}

/* 0: another file has it. What cannot be told, deleting tells. */
static int has_its_name(int fd, const char *path)
{
    struct stat own, named;
    return fstat(fd, &own) || lstat(path, &named) ||
           (own.st_ino == named.st_ino && own.st_dev == named.st_dev);
}

/* Rank 0. Of a file that would be published nothing is under its name: only what was there when it
 * was opened goes, and only if it is there. */
static void delete_own(const struct shmem_file *f, struct brg_error *failure)
{
    const char *path = f->token.path;
    int publishes = f->hints.publish != IO_PUBLISH_NO;
    if (f->goes < 0)
        return;
    if (has_its_name(f->goes, path))
        delete_file(path, publishes, failure);
    else if (!publishes)
        brg_error_set(failure, -ENOENT, "cannot delete %s: another file has its name by now", path);
}

/* Nothing is published that would be deleted at once. */
static int end_deleted(struct shmem_file *f, struct brg_error *failure)
{
    *failure = f->failure;
    int rc = file_agree(f, failure);
    if (rc)
        return rc;
    if (f->pgas->rank == 0)
        delete_own(f, failure);
    return file_agree(f, failure);
}

int SHMEM_File_close(SHMEM_File *file)
{
    struct brg_error failure = NO_FAILURE;
    struct shmem_file *f = file ? *file : NULL;
    if (file_check(f, &failure))
        return shmemio_end(&failure);
    int deletes = f->amode & SHMEM_MODE_DELETE_ON_CLOSE;
    if (deletes)
        end_deleted(f, &failure);
    else if (f->hints.publish)
        publish(f, &failure);
    else {
        store_show(f->store, &failure);
        file_agree(f, &failure);
    }
    file_destroy(f, deletes || failure.code);
    *file = SHMEM_FILE_NULL;
    return shmemio_end(&failure);
}

int SHMEM_File_delete(const char *path, SHMEM_Info info)
{
    struct brg_error failure = NO_FAILURE;
    (void)info;
    if (!path)
        return shmemio_refuse(-EINVAL, "cannot delete a file without a name: path is NULL");
    delete_file(path, 0, &failure);
    return shmemio_end(&failure);
}
