/* MPI's own files of a late one (late.h): opened when they are needed first, as it is by then. */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "mpiio/late.h"
#include "mpiio/late_handler.h"
#include "mpiio/late_name.h"
#include "mpiio/report.h"
#include "store/store.h"

/* What is opened by this rank alone is opened by one thread at a time; an error handler that is
 * called meanwhile may come here again. */
static pthread_mutex_t opening = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

/* The one that it has by now; free_handler ends it. */
static int own_handler(const struct file *f, mpi_handle *own)
{
    const struct mpi_late *mpi = f->mpi->files->late;
    *own = f->late->handler;
    return f->late->is_alone ? mpi->handler(f->late->alone, own) : 0;
}

static void free_handler(const struct file *f, mpi_handle own)
{
    if (f->late->is_alone)
        f->mpi->files->late->free_handler(own);
}

/* While MPI opens it, files to be opened have its error handler: so it is its own that is told of
 * what goes wrong, and that it has from then on. */
static int lend_handler(struct file *f, mpi_handle *lent)
{
    const struct mpi_late *mpi = f->mpi->files->late;
    mpi_handle own;
    int rc = mpi->handler(mpi->no_file, lent);
    if (rc)
        return rc;
    rc = own_handler(f, &own);
    if (!rc) {
        rc = mpi->set_handler(mpi->no_file, own);
        free_handler(f, own);
    }
    if (rc)
        mpi->free_handler(*lent);
    late_handler_opening(rc ? NULL : f);
    return rc;
}

static void take_handler_back(struct file *f, mpi_handle lent)
{
    const struct mpi_late *mpi = f->mpi->files->late;
    late_handler_opening(NULL);
    mpi->set_handler(mpi->no_file, lent);
    mpi->free_handler(lent);
}

/* Where another thread may open a file while all ranks open this one, nothing is lent: no lock may
 * be held meanwhile. It has its handler when it is open. */
static int lends_to_all(const struct file *f)
{
    return f->group->is_shared;
}

static int give_handler(struct file *f, mpi_handle file)
{
    mpi_handle own;
    int rc = own_handler(f, &own);
    if (rc)
        return rc;
    rc = f->mpi->files->late->set_handler(file, own);
    free_handler(f, own);
    return rc;
}

/* As it is by now. MPI's code. A file of ROMIO's does not count itself among the users of the
 * handler that it begins with, but ends that use as it is closed: one more is counted here. */
static int open_now(struct file *f, mpi_handle comm, const char *name, mpi_handle *out)
{
    const struct mpi_late *mpi = f->mpi->files->late;
    struct late *late = f->late;
    int64_t etypes = 0;
    mpi_handle file, handler;
    int known = late_position(f, &etypes) == 0;
    int rc = mpi->open(comm, name, late->mode & ~mpi->mode_create, late->info, &file);
    if (rc)
        return rc;
    if (late->has_view)
        rc = mpi->set_view(file, late->view.displacement, late->view.etype, late->view.filetype,
                           late->view.info);
    if (!rc && known && etypes)
        rc = f->mpi->files->seek(file, etypes);
    mpi->handler(file, &handler);
    *out = file;
    return rc;
}

/* The error of a file that cannot be opened is MPI's own, of an opening of this rank's; where that
 * goes well and it is another rank that cannot, of one that nobody can. Without descriptors MPI is
 * not asked: Open MPI would not find its own parts, and never look for them again. */
static int open_for_error(struct file *f, const char *name, int code)
{
    const struct mpi_late *mpi = f->mpi->files->late;
    mpi_handle file;
    if (code == -EMFILE || code == -ENFILE)
        return f->mpi->files->raise(f->late->is_alone ? f->late->alone : mpi->no_file, code);
    int mode = f->late->mode & ~mpi->mode_create;
    int rc = mpi->open(f->mpi->self, name, mode, mpi->no_info, &file);
    if (rc)
        return rc;
    mpi->close(&file);
    return mpi->open(f->mpi->self, "/dev/null/none", mode, mpi->no_info, &file);
}

/* The same where files to be opened do not have its handler. */
static int open_for_error_of(struct file *f, const char *name, int code)
{
    mpi_handle lent;
    if (lends_to_all(f))
        return open_for_error(f, name, code);
    pthread_mutex_lock(&opening);
    int rc = lend_handler(f, &lent);
    if (!rc) {
        rc = open_for_error(f, name, code);
        take_handler_back(f, lent);
    }
    pthread_mutex_unlock(&opening);
    return rc;
}

static int open_alone(struct file *f)
{
    struct late *late = f->late;
    struct late_name name;
    mpi_handle lent;
    int rc = lend_handler(f, &lent);
    if (rc)
        return rc;
    file_use(f);
    late_name_look(&name, f, getpid(), store_descriptor(f->all.store));
    file_used(f);
    int code = late_name_choose(&name);
    rc = code ? open_for_error(f, name.path, code)
              : open_now(f, f->mpi->self, name.path, &late->alone);
    take_handler_back(f, lent);
    late->is_alone = !rc;
    if (!rc)
        report_late(LATE_BY_MPI);
    return rc;
}

static int open_alone_once(struct file *f)
{
    unsigned held;
    int holds = late_hold_pointer(f, &held);
    pthread_mutex_lock(&opening);
    int rc = late_is_ours(f) ? open_alone(f) : 0;
    pthread_mutex_unlock(&opening);
    if (holds)
        late_release_pointer(held);
    return rc;
}

/* As all ranks have it open: with its handler, one way or the other. */
static int open_with_all(struct file *f, const char *name)
{
    struct late *late = f->late;
    int rc = open_now(f, f->group->comm, name, &late->together);
    if (lends_to_all(f))
        return rc;
    return rc ? open_for_error_of(f, name, 0) : give_handler(f, late->together);
}

/* If one rank cannot, none has it open. What the others have opened by then stays so: to close it
 * they would wait for that rank. What they have moved the shared pointer to, they have before they
 * come here. */
static int open_by_all(struct file *f)
{
    struct late *late = f->late;
    struct io_world *world = f->all.world;
    struct late_name name;
    struct brg_error failure;
    if (late_is_shared(f))
        late_name_look(&name, f, (int)late->page->pid, (int)late->page->descriptor);
    else
        late_name_look(&name, f, getpid(), store_descriptor(f->all.store));
    int code = world_minimum(world, name.found, LATE_NAME_VALUES, &failure);
    int none = late_name_choose(&name);
    if (none || code)
        return open_for_error_of(f, name.path, none);
    int rc = open_with_all(f, name.path);
    int64_t good = !rc;
    code = world_minimum(world, &good, 1, &failure);
    return rc || (!code && good) ? rc : open_for_error_of(f, name.path, 0);
}

static int open_together(struct file *f)
{
    struct late *late = f->late;
    mpi_handle lent = 0;
    int first = late_is_ours(f), rc = lends_to_all(f) ? lend_handler(f, &lent) : 0;
    if (rc)
        return rc;
    rc = open_by_all(f);
    if (lends_to_all(f))
        take_handler_back(f, lent);
    if (rc)
        return rc;
    late->is_together = 1;
    if (first)
        report_late(LATE_BY_MPI);
    int64_t shared = atomic_load(&late->page->shared);
    return shared ? f->mpi->files->late->seek_shared(late->together, shared) : 0;
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
        rc = open_alone_once(f);
    if (!rc)
        *handle = late->is_together ? late->together : late->alone;
    return rc;
}

/* MPI's own function: the one that a search of the whole program finds is ours (hooks.c), which
 * would take this for an error handler that closes its file. */
static int close_in_mpi(mpi_handle *file)
{
    static int (*close_file)(mpi_handle *);
    if (!close_file)
        *(void **)&close_file = hooks_next("PMPI_File_close");
    return close_file ? close_file(file) : MPI_FAILED;
}

int late_end_mpi(struct file *f)
{
    const struct mpi_late *mpi = f->mpi->files->late;
    struct late *late = f->late;
    mpi_handle handler;
    int is_ours = late_is_ours(f);
    if (!is_ours && mpi->handler(late->is_together ? late->together : late->alone, &handler) == 0) {
        mpi->free_handler(late->handler);
        late->handler = handler;
    }
    int alone = late->is_alone ? close_in_mpi(&late->alone) : 0;
    int together = late->is_together ? close_in_mpi(&late->together) : 0;
    late->is_alone = late->is_together = 0;
    return together ? together : alone;
}

int late_raise(struct file *f, int code)
{
    mpi_handle handle;
    int rc = late_handle(f, WITH_NOBODY, &handle);
    return rc ? rc : f->mpi->files->raise(handle, code);
}
