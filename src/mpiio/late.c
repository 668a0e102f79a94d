/* See late.h. */
#include "mpiio/late.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpiio/asks.h"
#include "mpiio/late_hints.h"
#include "mpiio/late_stripes.h"
#include "mpiio/merged.h"
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
           files->is_intra(comm) && !files->same_ranks(comm, mpi->self) && merged_none(files, comm);
}

/* Of this rank's arguments. */
static int suits(const struct mpi_files *files, const char *path, int mode, mpi_handle info)
{
    const struct mpi_late *late = files->late;
    int way = mode & (files->mode_read | files->mode_write | late->mode_both);
    int creates = mode & late->mode_create, others = mode & ~(way | creates | late->mode_unique);
    if (others || !way || way & (way - 1) || (creates && way == files->mode_read))
        return 0;
    if (late_stripes_asked(files, info, creates))
        return 0;
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
    ONE_THREAD,
    WORD,
    NOT_WORD,
    N_TOLD
};

/* What the ranks hear: who they are. */
struct ranks {
    int threads; /* several may call MPI at a time, on some rank */
    struct group *offer;
    int is_same; /* all offer the same */
};

/* Ranks that know each other from another file meet where they sleep while they wait, and MPI's
 * spin: with four to a processor, on several nodes, MPI's reduction took most of an opening. They
 * know also whether they are of one node. */
static int all_suit(const struct mpi_interface *mpi, mpi_handle comm, const char *path, int mode,
                    mpi_handle info, struct ranks *ranks)
{
    struct io_world *world = group_world(mpi, group_find(mpi, comm));
    struct node_mark mark = {.place = 0};
    struct brg_error failure;
    int apart = world && world->n_nodes > 1;
    int64_t v[N_TOLD] = {[SUITS] = suits(mpi->files, path, mode, info),
                         [MODE] = mode,
                         [PATH] = sum_of(path),
                         [ONE_POINTER] = !may_miss_pointer(world && !apart),
                         [ONE_THREAD] = !mpi->files->threads(0),
                         [WORD] = group_word(ranks->offer)};
    if (!world)
        node_mark_self(&mark);
    v[NODE] = (int64_t)mark.place;
    v[NOT_MODE] = ~v[MODE];
    v[NOT_PATH] = ~v[PATH];
    v[NOT_NODE] = ~v[NODE];
    v[NOT_WORD] = ~v[WORD];
    if (world ? world_minimum(world, v, N_TOLD, &failure)
              : mpi->files->late->least(comm, v, N_TOLD))
        return 0;
    if (!world)
        apart = v[NODE] != ~v[NOT_NODE];
    ranks->threads = !v[ONE_THREAD];
    ranks->is_same = v[WORD] == ~v[NOT_WORD] && v[WORD] != GROUP_NO_WORD;
    return v[SUITS] && v[MODE] == ~v[NOT_MODE] && v[PATH] == ~v[NOT_PATH] &&
           (v[ONE_POINTER] || !apart);
}

static struct late *new_late(const struct mpi_late *mpi, int mode, mpi_handle info)
{
    static atomic_int numbers;
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
    struct ranks ranks = {.threads = 0};
    if (mpi_join(&mpi, NULL) || !path || !may(mpi, comm))
        return 0;
    ranks.offer = group_offer(mpi, comm);
    if (!all_suit(mpi, comm, path, mode, info, &ranks)) {
        if (ranks.offer)
            group_give(mpi, ranks.offer);
        return 0;
    }
    struct group *group = group_take_told(mpi, comm, ranks.threads, ranks.offer, ranks.is_same);
    struct file *f = file_new(mpi, group, path, mode, info);
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

/* The ranks meet, when MPI has closed its own: whoever removes or renames the file next must not do
 * so before the others have had it opened by its name. And they say what closing ours has told, for
 * which MPI may have to open one once more. */
int late_close(struct file *f, mpi_handle *handle)
{
    struct brg_error failure = {.rank = -1, .offset = -1};
    int of_mpi = late_end_mpi(f), rc = file_show_last(f, &failure);
    if (rc)
        rc = late_raise(f, rc);
    late_end_mpi(f);
    *handle = f->mpi->files->late->no_file;
    file_forget(f);
    end(f);
    return of_mpi ? of_mpi : rc;
}

/* ---- what there is of MPI ---- */

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
