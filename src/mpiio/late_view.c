/* See late.h: where a late file is, and what is seen of it. */
#include <pthread.h>
#include <string.h>

#include "mpi/types.h"
#include "mpiio/late.h"
#include "mpiio/late_hints.h"

/* MPI's, of a file whose position is not ours. */
static mpi_handle handle_of(const struct file *f)
{
    const struct late *late = f->late;
    return !late ? f->handle : late->is_together ? late->together : late->alone;
}

int late_position(struct file *f, int64_t *etypes)
{
    if (!late_is_ours(f))
        return f->mpi->files->position(handle_of(f), etypes);
    *etypes = f->late->position;
    return 0;
}

int late_seek(struct file *f, int64_t etypes)
{
    if (!late_is_ours(f))
        return f->mpi->files->seek(handle_of(f), etypes);
    f->late->position = etypes;
    return 0;
}

/* Not the file's own: an error handler that is called meanwhile may close that. */
#define FOUR                                                                        \
    PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP, PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP, \
        PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP, PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP
static pthread_mutex_t pointers[] = {FOUR, FOUR, FOUR, FOUR};
#define N_POINTERS (sizeof pointers / sizeof *pointers)

int late_hold_pointer(const struct file *f, unsigned *held)
{
    if (!f->late || f->group->is_shared)
        return 0;
    *held = (unsigned)f->late->number % N_POINTERS;
    pthread_mutex_lock(&pointers[*held]);
    return 1;
}

void late_release_pointer(unsigned held)
{
    pthread_mutex_unlock(&pointers[held]);
}

/* ---- views ---- */

/* Copies a view in its own place, all of it (1) or nothing (0). */
static int copy_view(const struct mpi_interface *mpi, struct late_view *view)
{
    const struct mpi_late *late = mpi->files->late;
    if (late->copy_type(view->etype, &view->etype))
        return 0;
    if (!late->copy_type(view->filetype, &view->filetype)) {
        if (!late->copy_info(view->info, &view->info))
            return 1;
        mpi->types->release(view->filetype);
    }
    mpi->types->release(view->etype);
    return 0;
}

static void free_view(const struct mpi_interface *mpi, const struct late_view *view)
{
    mpi->types->release(view->etype);
    mpi->types->release(view->filetype);
    mpi->files->late->free_info(view->info);
}

void late_drop_view(struct file *f)
{
    if (f->late->has_view)
        free_view(f->mpi, &f->late->view);
    f->late->has_view = 0;
}

static int begin_shared(void *file, int64_t *least)
{
    struct file *f = file;
    if (least[0])
        atomic_store(&f->late->page->shared, 0);
    return 0;
}

int late_set_view(struct file *f, int64_t displacement, mpi_handle etype, mpi_handle filetype,
                  const char *name, mpi_handle info)
{
    const struct mpi_late *mpi = f->mpi->files->late;
    struct late *late = f->late;
    struct brg_error failure;
    struct late_view view = {displacement, etype, filetype, info};
    int plain = displacement >= 0 && strcmp(name, "native") == 0;
    file_set_view(f, displacement, etype, filetype, name);
    int copied = plain && f->has_view && copy_view(f->mpi, &view);
    int64_t able = copied && (view.info == mpi->no_info || late_hints_unasked());
    if (able && late->is_alone)
        able = mpi->set_view(late->alone, displacement, etype, filetype, info) == 0;
    if (world_meet(f->all.world, &able, 1, begin_shared, f, &failure))
        able = 0;
    if (!able && copied)
        free_view(f->mpi, &view);
    if (!able)
        return 0;
    late_drop_view(f);
    late->has_view = 1;
    late->view = view;
    late->position = 0;
    return 1;
}
