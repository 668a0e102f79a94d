/* See late.h. */
#include "mpiio/late.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/types.h"
#include "mpiio/report.h"

#define FIRST_NUMBER 0x4c000000 /* MPIs count from 0, or 1 */

/* ---- opening and closing ---- */

/* The same on all ranks. One file of several threads may be opened in another order elsewhere; the
 * ranks of MPI_COMM_WORLD keep their world, and to make another costs more than is saved. */
static int may(const struct mpi_interface *mpi, mpi_handle comm, const char *path, int mode,
               mpi_handle info)
{
    const struct mpi_files *files = mpi->files;
    const struct mpi_late *late = files ? files->late : NULL;
    if (!late || !mpi->types || comm == late->no_comm || !path)
        return 0;
    int way = mode & (files->mode_read | files->mode_write | late->mode_both);
    int creates = mode & late->mode_create, others = mode & ~(way | creates | late->mode_unique);
    if (others || !way || way & (way - 1) || (creates && way == files->mode_read))
        return 0;
    return !file_left_to_mpi(files, path, mode, info) && !strchr(path, ':') && !files->threads() &&
           files->same_ranks(comm, mpi->world) && !files->same_ranks(comm, mpi->self);
}

static struct late *new_late(const struct mpi_late *mpi, int mode, mpi_handle info)
{
    static int numbers;
    struct late *late = calloc(1, sizeof *late);
    if (!late)
        return NULL;
    *late = (struct late){.mode = mode, .page = -1, .number = FIRST_NUMBER + numbers++};
    if (mpi->copy_info(info, &late->info) == 0)
        return late;
    free(late);
    return NULL;
}

enum {
    ABLE,
    PAGE, /* rank 0's; the others say nothing */
    N_VALUES
};

/* One that all ranks can open, with a page for what they share. Rank 0 takes it when all have come
 * to the meeting that opens the file, and so have closed the one that had it before. */
static int agree(struct file *f)
{
    struct reach *r = &f->all;
    struct brg_error failure;
    int64_t v[N_VALUES] = {f->late && !r->unable && r->world->n_nodes == 1, INT64_MAX};
    int page = r->world->rank == 0 ? world_take_page(r->world) : -1;
    if (r->world->rank == 0) {
        v[PAGE] = page;
        v[ABLE] = v[ABLE] && page >= 0;
    }
    if (world_minimum(r->world, v, N_VALUES, &failure) || !v[ABLE]) {
        world_give_page(r->world, page);
        return 0;
    }
    f->late->page = (int)v[PAGE];
    f->late->shared = (_Atomic int64_t *)(void *)world_page(r->world, f->late->page);
    return 1;
}

static void drop_view(struct file *f)
{
    if (f->late->has_view) {
        f->mpi->types->release(f->late->etype);
        f->mpi->types->release(f->late->filetype);
    }
    f->late->has_view = 0;
}

static void end(struct file *f)
{
    struct late *late = f->late;
    if (late) {
        if (f->all.world && f->all.world->rank == 0)
            world_give_page(f->all.world, late->page);
        drop_view(f);
        f->mpi->files->late->free_info(late->info);
        free(late);
    }
    file_end(f);
}

int late_open(mpi_handle comm, const char *path, int mode, mpi_handle info, mpi_handle *handle)
{
    const struct mpi_interface *mpi;
    if (mpi_join(&mpi, NULL) || !may(mpi, comm, path, mode, info))
        return 0;
    struct file *f = file_new(mpi, comm, path, mode, info);
    if (!f)
        return 0;
    f->flags = (f->can_read ? BRG_READ : 0) | (f->can_write ? BRG_WRITE : 0) |
               (mode & mpi->files->late->mode_create ? BRG_CREATE : 0);
    f->late = new_late(mpi->files->late, mode, info);
    if (file_reach(f) || !agree(f)) {
        end(f);
        return 0;
    }
    *handle = (mpi_handle)f;
    file_keep(f, *handle);
    report_late(0);
    return 1;
}

/* The ranks meet: whoever removes or renames the file next must not do so before the others have
 * had it opened by its name. */
int late_close(struct file *f, mpi_handle *handle)
{
    const struct mpi_late *mpi = f->mpi->files->late;
    struct late *late = f->late;
    int alone = late->is_alone ? mpi->close(&late->alone) : 0;
    int rc = late->is_together ? mpi->close(&late->together) : 0;
    int64_t nothing = 0;
    struct brg_error failure;
    world_minimum(f->all.world, &nothing, 1, &failure);
    *handle = mpi->no_file;
    file_forget(f);
    end(f);
    return rc ? rc : alone;
}

/* ---- MPI's own files ---- */

int late_is_apart(const struct file *f)
{
    return f->late && !f->late->is_together;
}

int late_is_ours(const struct file *f)
{
    return late_is_apart(f) && !f->late->is_alone;
}

/* As it is by now; the name is the one that the file had when the program opened it. */
static int open_now(struct file *f, mpi_handle comm, mpi_handle *out)
{
    const struct mpi_late *mpi = f->mpi->files->late;
    struct late *late = f->late;
    int64_t etypes = 0;
    mpi_handle file;
    if (late_is_ours(f))
        report_late(1);
    int known = late_position(f, &etypes) == 0;
    int rc = mpi->open(comm, f->all.token.path, late->mode & ~mpi->mode_create, late->info, &file);
    if (rc)
        return rc;
    if (late->has_view)
        rc = mpi->set_view(file, late->displacement, late->etype, late->filetype);
    if (!rc && known && etypes)
        rc = f->mpi->files->seek(file, etypes);
    if (!rc && late->is_alone)
        rc = mpi->same_handler(file, late->alone);
    if (rc)
        mpi->close(&file);
    else
        *out = file;
    return rc;
}

static int open_alone(struct file *f)
{
    struct late *late = f->late;
    int rc = open_now(f, f->mpi->self, &late->alone);
    late->is_alone = !rc;
    return rc;
}

/* What the ranks have moved the shared pointer to, they have before they come here. */
static int open_together(struct file *f)
{
    struct late *late = f->late;
    int rc = open_now(f, f->group->comm, &late->together);
    if (rc)
        return rc;
    int64_t shared = atomic_load(late->shared);
    if (shared)
        rc = f->mpi->files->late->seek_shared(late->together, shared);
    late->is_together = 1;
    return rc;
}

int late_handle(struct file *f, enum with with, mpi_handle *handle)
{
    struct late *late = f->late;
    int rc = 0;
    if (!late)
        *handle = f->handle;
    if (!late)
        return 0;
    if (with == WITH_ALL && !late->is_together)
        rc = open_together(f);
    else if (late_is_ours(f))
        rc = open_alone(f);
    if (!rc)
        *handle = late->is_together ? late->together : late->alone;
    return rc;
}

/* ---- where it is ---- */

int late_position(struct file *f, int64_t *etypes)
{
    const struct late *late = f->late;
    if (late_is_ours(f))
        *etypes = late->position;
    if (late_is_ours(f))
        return 0;
    mpi_handle handle = !late ? f->handle : late->is_together ? late->together : late->alone;
    return f->mpi->files->position(handle, etypes);
}

int late_seek(struct file *f, int64_t etypes)
{
    const struct late *late = f->late;
    if (late_is_ours(f))
        f->late->position = etypes;
    if (late_is_ours(f))
        return 0;
    mpi_handle handle = !late ? f->handle : late->is_together ? late->together : late->alone;
    return f->mpi->files->seek(handle, etypes);
}

static int begin_shared(void *file, int64_t *least)
{
    struct file *f = file;
    if (least[0])
        atomic_store(f->late->shared, 0);
    return 0;
}

int late_set_view(struct file *f, int64_t displacement, mpi_handle etype, mpi_handle filetype,
                  const char *name)
{
    const struct mpi_late *mpi = f->mpi->files->late;
    struct late *late = f->late;
    struct brg_error failure;
    mpi_handle copies[2] = {etype, filetype};
    int plain = displacement >= 0 && strcmp(name, "native") == 0, copied = 0;
    file_set_view(f, displacement, etype, filetype, name);
    if (plain && f->has_view)
        copied = mpi->copy_type(etype, &copies[0]) == 0;
    if (copied && mpi->copy_type(filetype, &copies[1])) {
        f->mpi->types->release(copies[0]);
        copied = 0;
    }
    int64_t able = copied && (!late->is_alone ||
                              mpi->set_view(late->alone, displacement, etype, filetype) == 0);
    if (world_meet(f->all.world, &able, 1, begin_shared, f, &failure))
        able = 0;
    if (able)
        drop_view(f);
    else if (copied) {
        f->mpi->types->release(copies[0]);
        f->mpi->types->release(copies[1]);
    }
    if (!able)
        return 0;
    late->has_view = 1;
    late->displacement = displacement;
    late->etype = copies[0];
    late->filetype = copies[1];
    late->position = 0;
    return 1;
}
