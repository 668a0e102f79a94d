/* See late.h. */
#include "mpiio/late.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpiio/asks.h"
#include "mpiio/late_handler.h"
#include "mpiio/late_hints.h"
#include "mpiio/late_name.h"
#include "mpiio/report.h"
#include "store/store.h"
#include "world/nodes.h"

#define FIRST_NUMBER 0x4c000000 /* MPIs count from 0, or 1 */

/* ---- opening and closing ---- */

/* The same on all ranks. */
static int may(const struct mpi_interface *mpi, mpi_handle comm)
{
    const struct mpi_files *files = mpi->files;
    return files && files->late && mpi->types && comm != files->late->no_comm &&
           !files->same_ranks(comm, mpi->self);
}

/* Of this rank's arguments. One file of several threads may be opened in another order
 * elsewhere. */
static int suits(const struct mpi_files *files, const char *path, int mode, mpi_handle info)
{
    const struct mpi_late *late = files->late;
    char value[32];
    int way = mode & (files->mode_read | files->mode_write | late->mode_both);
    int creates = mode & late->mode_create, others = mode & ~(way | creates | late->mode_unique);
    if (files->threads(0) || others || !way || way & (way - 1) ||
        (creates && way == files->mode_read))
        return 0;
    if (creates && files->hint(info, "striping_factor", value, sizeof value))
        return 0; /* the MPI makes a file of so many stripes where it can */
    return !file_left_to_mpi(files, path, mode, info) && !strchr(path, ':');
}

static int64_t sum_of(const char *path)
{
    uint64_t sum = 0xcbf29ce484222325;
    for (; *path; path++)
        sum = (sum ^ (unsigned char)*path) * 0x100000001b3;
    return (int64_t)(sum >> 1);
}

/* A pointer of all ranks is out of reach of one where they share no memory. */
static int may_miss_pointer(int shares)
{
    return !shares && asks_for(ASKS_SHARED);
}

/* What ranks tell each other before anything is opened or made here; the least of all counts. Those
 * that ask for different things are wrong, but what comes of it is MPI's to say. */
enum {
    SUITS,
    MODE,
    NOT_MODE, /* the complement: the least of both are of one only if all are the same */
    PATH,
    NOT_PATH,
    ONE_POINTER, /* 0: may move one of all ranks, and they may be of several nodes */
    NODE,
    NOT_NODE,
    N_TOLD
};

/* Ranks that know each other from another file meet where they sleep while they wait, and MPI's
 * spin: with four to a processor, on several nodes, MPI's reduction took most of an opening. They
 * know also whether they are of one node. */
static int all_suit(const struct mpi_interface *mpi, mpi_handle comm, const char *path, int mode,
                    mpi_handle info)
{
    struct io_world *world = group_world(mpi, group_find(mpi, comm));
    struct node_mark mark = {.place = 0};
    struct brg_error failure;
    int apart = world && world->n_nodes > 1;
    int64_t v[N_TOLD] = {[SUITS] = suits(mpi->files, path, mode, info),
                         [MODE] = mode,
                         [PATH] = sum_of(path),
                         [ONE_POINTER] = !may_miss_pointer(world && !apart)};
    if (!world)
        node_mark_self(&mark);
    v[NODE] = (int64_t)mark.place;
    v[NOT_MODE] = ~v[MODE];
    v[NOT_PATH] = ~v[PATH];
    v[NOT_NODE] = ~v[NODE];
    if (world ? world_minimum(world, v, N_TOLD, &failure)
              : mpi->files->late->least(comm, v, N_TOLD))
        return 0;
    if (!world)
        apart = v[NODE] != ~v[NOT_NODE];
    return v[SUITS] && v[MODE] == ~v[NOT_MODE] && v[PATH] == ~v[NOT_PATH] &&
           (v[ONE_POINTER] || !apart);
}

static struct late *new_late(const struct mpi_late *mpi, int mode, mpi_handle info)
{
    static int numbers;
    struct late *late = calloc(1, sizeof *late);
    if (!late)
        return NULL;
    *late = (struct late){.mode = mode, .page_number = -1, .number = FIRST_NUMBER + numbers++};
    memset(late->face, 0xff, sizeof late->face);
    int rc = mpi->copy_info(info, &late->info);
    if (!rc && mpi->handler(mpi->no_file, &late->handler) == 0)
        return late;
    if (!rc)
        mpi->free_info(late->info);
    free(late);
    return NULL;
}

enum {
    ABLE,
    PAGE,  /* rank 0's; the others say nothing */
    HINTS, /* 0: nobody can say for MPI what they are */
    N_VALUES
};

static struct late_page *page_at(const struct io_world *w, int number)
{
    return (struct late_page *)(void *)world_page(w, number);
}

/* One that all ranks can open, with a page for what they share on one node. Rank 0 takes it when
 * all have come to the meeting that opens the file, and so have closed the one that had it
 * before. */
static int agree(struct file *f)
{
    const struct mpi_late *mpi = f->mpi->files->late;
    struct reach *r = &f->all;
    struct brg_error failure;
    int shares = r->world->n_nodes == 1, gives = shares && r->world->rank == 0;
    int can = f->late && !r->unable && !may_miss_pointer(shares);
    int64_t v[N_VALUES] = {can, INT64_MAX, 1};
    int page = gives ? world_take_page(r->world, 0) : -1;
    if (gives) {
        v[PAGE] = page;
        v[ABLE] = v[ABLE] && page >= 0;
    }
    if (page >= 0 && r->store) {
        struct late_page *shared = page_at(r->world, page);
        shared->pid = getpid();
        shared->descriptor = store_descriptor(r->store);
    }
    if (v[ABLE])
        v[HINTS] = late_hints_allow(mpi, f, f->late->info);
    int rc = world_minimum(r->world, v, N_VALUES, &failure);
    if (rc || !v[ABLE] || !v[HINTS]) {
        world_give_page(r->world, page);
        if (!rc && v[ABLE] && !v[HINTS]) {
            late_hints_expect(mpi, f, f->late->info);
            report_late(LATE_FOR_HINTS);
        }
        return 0;
    }
    f->late->page_number = shares ? (int)v[PAGE] : -1;
    f->late->page = shares ? page_at(r->world, (int)v[PAGE]) : &f->late->own;
    return 1;
}

static void end(struct file *f)
{
    struct late *late = f->late;
    if (late) {
        if (f->all.world && f->all.world->rank == 0)
            world_give_page(f->all.world, late->page_number);
        late_drop_view(f);
        f->mpi->files->late->free_info(late->info);
        f->mpi->files->late->free_handler(late->handler);
        free(late);
    }
    file_end(f);
}

int late_open(mpi_handle comm, const char *path, int mode, mpi_handle info, mpi_handle *handle)
{
    const struct mpi_interface *mpi;
    if (mpi_join(&mpi, NULL) || !path || !may(mpi, comm) || !all_suit(mpi, comm, path, mode, info))
        return 0;
    struct file *f = file_new(mpi, comm, GROUP_ONE_THREAD, path, mode, info);
    if (!f)
        return 0;
    f->flags = (f->can_read ? BRG_READ : 0) | (f->can_write ? BRG_WRITE : 0) |
               (mode & mpi->files->late->mode_create ? BRG_CREATE : 0);
    f->late = new_late(mpi->files->late, mode, info);
    if (file_reach(f) || !agree(f)) {
        end(f);
        return 0;
    }
    *handle = (mpi_handle)f->late->face;
    file_keep(f, *handle);
    report_late(LATE_OPENED);
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

int late_is_shared(const struct file *f)
{
    return f->late->page != &f->late->own;
}

/* While MPI opens it, files to be opened have its error handler: so it is its own that is told of
 * what goes wrong, and that it has from then on. */
static int lend_handler(struct file *f, mpi_handle *lent)
{
    const struct mpi_late *mpi = f->mpi->files->late;
    int rc = mpi->handler(mpi->no_file, lent);
    mpi_handle own = f->late->handler;
    if (rc)
        return rc;
    if (f->late->is_alone)
        rc = mpi->handler(f->late->alone, &own);
    if (!rc)
        rc = mpi->set_handler(mpi->no_file, own);
    if (!rc && f->late->is_alone)
        mpi->free_handler(own);
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

static int open_alone(struct file *f)
{
    struct late *late = f->late;
    struct late_name name;
    mpi_handle lent;
    int rc = lend_handler(f, &lent);
    if (rc)
        return rc;
    late_name_look(&name, f, getpid(), store_descriptor(f->all.store));
    int code = late_name_choose(&name);
    rc = code ? open_for_error(f, name.path, code)
              : open_now(f, f->mpi->self, name.path, &late->alone);
    take_handler_back(f, lent);
    late->is_alone = !rc;
    if (!rc)
        report_late(LATE_BY_MPI);
    return rc;
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
        return open_for_error(f, name.path, none);
    int rc = open_now(f, f->group->comm, name.path, &late->together);
    int64_t good = !rc;
    code = world_minimum(world, &good, 1, &failure);
    return rc || (!code && good) ? rc : open_for_error(f, name.path, 0);
}

static int open_together(struct file *f)
{
    struct late *late = f->late;
    mpi_handle lent;
    int first = late_is_ours(f), rc = lend_handler(f, &lent);
    if (rc)
        return rc;
    rc = open_by_all(f);
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
        rc = open_alone(f);
    if (!rc)
        *handle = late->is_together ? late->together : late->alone;
    return rc;
}

int late_raise(struct file *f, int code)
{
    mpi_handle handle;
    int rc = late_handle(f, WITH_NOBODY, &handle);
    return rc ? rc : f->mpi->files->raise(handle, code);
}
