/* Groups of PEs, and what carries them.
 *
 * A group is a number (brigade/shmemio.h); what files need of it is made when the first one is
 * opened on it, and ends with the last: its place in OpenSHMEM's memory or in a world of MPI's
 * ranks, and windows of each size that some file wants. Files on one group share them, as their
 * calls come one after another.
 *
 * A world of MPI's outlasts its files. On one node it keeps for the next file what carries the
 * group, and the windows that were used last: making them takes longer than a small file.
 *
 *   bits 0-1: 1 named (WORLD, SELF), 2 a set, 3 a communicator of MPI's in the rest
 *   of a set: bits 2-6 log_stride, 7-34 start, 35-62 size */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "mpi/mpi.h"
#include "shmemio/inside.h"

#define POOL_BYTES (UINT64_C(64) << 20)
#define MOST_PES (1 << 28)

enum {
    NAMED = 1,
    SET = 2,
    OF_MPI = 3
};

static struct group *groups;

static int kind_of(SHMEM_Comm comm)
{
    return (int)(comm & 3);
}

static uint32_t set_log_stride(SHMEM_Comm comm)
{
    return comm >> 2 & 31;
}

static uint32_t set_start(SHMEM_Comm comm)
{
    return comm >> 7 & (MOST_PES - 1);
}

static uint32_t set_size(SHMEM_Comm comm)
{
    return comm >> 35 & (MOST_PES - 1);
}

SHMEM_Comm SHMEM_Comm_of_mpi_handle(uintptr_t comm)
{
    return (SHMEM_Comm)comm << 2 | OF_MPI;
}

/* Of BRIGADE_SHMEM_POOL, as hints have sizes. */
static uint64_t pool_bytes(struct brg_error *err)
{
    const char *text = getenv("BRIGADE_SHMEM_POOL");
    uint64_t bytes = POOL_BYTES;
    if (text && hints_size(text, &bytes)) {
        brg_error_set(err, -EINVAL, "BRIGADE_SHMEM_POOL=%s: it takes a size, as 64M", text);
        return 0;
    }
    return bytes;
}

int SHMEM_Comm_active_set(int start, int log_stride, int size, SHMEM_Comm *comm)
{
    struct brg_error failure = NO_FAILURE;
    uint32_t me, all;
    uint64_t bytes = pool_bytes(&failure);
    if (failure.code || pgas_shmem_runs(&me, &all, &failure) ||
        pgas_shmem_reserve((size_t)bytes, &failure))
        return shmemio_end(&failure);
    if (size == 0) {
        *comm = SHMEM_COMM_NULL;
        return SHMEM_SUCCESS;
    }
    if (start < 0 || log_stride < 0 || log_stride > 31 || size < 0 ||
        start + ((int64_t)(size - 1) << log_stride) >= (int64_t)all)
        return shmemio_refuse(-WRONG_COMM,
                              "a set of %d PEs from %d on, 2^%d apart, is not among the %u PEs of "
                              "this job",
                              size, start, log_stride, all);
    *comm = (SHMEM_Comm)size << 35 | (SHMEM_Comm)start << 7 | (SHMEM_Comm)log_stride << 2 | SET;
    return SHMEM_SUCCESS;
}

/* ---- what a world keeps: a group without a name ---- */

/* MPI's windows end by a collective call: they cannot be kept until MPI itself ends. */
static int may_keep(const struct group *g)
{
    return g->world && (g->world->n_nodes == 1 || g->by_messages) && !g->world->broken.code;
}

static void drop_kept(void *value)
{
    struct group *g = value;
    for (struct group_windows *w = g->windows, *next; w; w = next) {
        next = w->next;
        onesided_forget(w->onesided);
        free(w);
    }
    pgas_windows_forget(g->pgas);
    free(g);
}

static int take_kept(struct group *g)
{
    struct group *kept = g->world->kept;
    if (!kept || kept->seam != g->seam)
        return 0;
    g->pgas = kept->pgas;
    g->windows = kept->windows;
    g->by_messages = kept->by_messages;
    memcpy(g->why, kept->why, sizeof g->why);
    g->world->kept = NULL;
    free(kept);
    return 1;
}

/* ---- what carries one ---- */

/* From here on an addition is not done by the network alone: the target's process must help. */
#define SLOW_NS 20000

/* Put and get pay where memory of other nodes is reached without their processors; where it is not,
 * a node's share of a window in one message is faster. */
static int choose_messages(struct group *g, const struct io_hints *hints, struct brg_error *err)
{
    int64_t ns = 0;
    if (hints->seam == IO_SEAM_MESSAGES) {
        g->by_messages = 1;
        snprintf(g->why, sizeof g->why, "messages, asked for");
        return 0;
    }
    snprintf(g->why, sizeof g->why, "windows");
    if (hints->seam != IO_SEAM_AUTO || g->world->n_nodes == 1)
        return 0;
    int rc = pgas_windows_cost(g->pgas, &ns, err);
    g->by_messages = ns < 0 || ns > SLOW_NS;
    if (ns < 0)
        snprintf(g->why, sizeof g->why, "messages: MPI makes no window between these nodes");
    else
        snprintf(g->why, sizeof g->why, "%s: adding in another node's memory takes %lld us",
                 g->by_messages ? "messages" : "windows", (long long)(ns / 1000));
    return rc;
}

static uintptr_t handle_of(SHMEM_Comm comm, const struct mpi_interface *mpi)
{
    return kind_of(comm) == OF_MPI ? (uintptr_t)(comm >> 2) : mpi->world;
}

static int no_group(SHMEM_Comm comm, struct brg_error *err)
{
    return brg_error_set(err, -WRONG_COMM, "%#llx is no group of PEs%s", (unsigned long long)comm,
                         comm ? "" : ": it is SHMEM_COMM_NULL");
}

static int carry_by_mpi(struct group *g, const struct io_hints *hints, struct brg_error *err)
{
    const struct mpi_interface *mpi;
    int rc = mpi_join(&mpi, err);
    if (rc)
        return rc;
    rc = world_open(handle_of(g->comm, mpi), 0, hints->share, hints->segment_bytes, NULL, &g->world,
                    err);
    if (rc)
        return rc;
    if (take_kept(g))
        return 0;
    rc = pgas_windows(g->world, &g->pgas, err);
    if (!rc && (rc = choose_messages(g, hints, err)))
        g->pgas->close(g->pgas);
    if (rc)
        world_close(g->world);
    return rc;
}

/* World: OpenSHMEM where it runs, unless the hint says otherwise; else MPI. */
static int carry(struct group *g, const struct io_hints *hints, struct brg_error *err)
{
    uint32_t me, all;
    if (g->comm == SHMEM_COMM_SELF)
        return pgas_single(&g->pgas, err);
    if (kind_of(g->comm) == SET)
        return pgas_shmem(set_start(g->comm), set_log_stride(g->comm), set_size(g->comm), &g->pgas,
                          err);
    if (kind_of(g->comm) == OF_MPI)
        return carry_by_mpi(g, hints, err);
    if (g->comm != SHMEM_COMM_WORLD)
        return no_group(g->comm, err);
    int by_mpi = hints->seam == IO_SEAM_WINDOWS || hints->seam == IO_SEAM_MESSAGES;
    int rc = by_mpi ? -EINVAL : pgas_shmem_runs(&me, &all, err);
    if (!rc)
        return pgas_shmem(0, 0, all, &g->pgas, err);
    struct brg_error other = *err;
    if (hints->seam != IO_SEAM_SHMEM)
        rc = carry_by_mpi(g, hints, err);
    if (rc && hints->seam == IO_SEAM_AUTO)
        *err = other; /* what an OpenSHMEM program lacks says more */
    return rc;
}

int group_open(SHMEM_Comm comm, const struct io_hints *hints, struct group **out,
               struct brg_error *err)
{
    struct group *g = groups;
    while (g && (g->comm != comm || g->seam != hints->seam))
        g = g->next;
    if (!g) {
        g = calloc(1, sizeof *g);
        if (!g)
            return brg_error_set(err, -ENOMEM, "no memory for a group of PEs");
        g->comm = comm;
        g->seam = hints->seam;
        int rc = carry(g, hints, err);
        if (rc) {
            free(g);
            return rc;
        }
        g->next = groups;
        groups = g;
    }
    g->users++;
    *out = g;
    return 0;
}

/* Windows that no file uses, but for `stays`. */
static void close_idle(struct group *g, const struct group_windows *stays)
{
    struct group_windows **at = &g->windows;
    while (*at) {
        struct group_windows *w = *at;
        if (w->users || w == stays) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        onesided_close(w->onesided);
        free(w);
    }
}

void group_close(struct group *g)
{
    struct io_world *world = g->world;
    if (--g->users)
        return;
    struct group **at = &groups;
    while (*at != g)
        at = &(*at)->next;
    *at = g->next;
    if (may_keep(g) && !world->kept) {
        world->kept = g;
        world->drop = drop_kept;
    } else {
        close_idle(g, NULL);
        g->pgas->close(g->pgas);
        free(g);
    }
    if (world)
        world_close(world);
}

int group_windows_open(struct group *g, uint64_t bytes, struct group_windows **out,
                       struct brg_error *err)
{
    struct group_windows *w = g->windows;
    while (w && w->bytes != bytes)
        w = w->next;
    if (!w) {
        struct brg_error failure = NO_FAILURE;
        w = calloc(1, sizeof *w);
        if (!w)
            brg_error_set(&failure, -ENOMEM, "no memory for a file");
        int rc = pgas_failure(g->pgas, &failure);
        if (!rc && g->by_messages) {
            onesided_open_messages(g->pgas, g->world, &w->onesided, &failure);
            rc = pgas_failure(g->pgas, &failure);
        } else if (!rc)
            rc = onesided_open(g->pgas, bytes, &w->onesided, &failure);
        if (rc) {
            free(w);
            *err = failure;
            return rc;
        }
        w->bytes = bytes;
        w->next = g->windows;
        g->windows = w;
    }
    w->users++;
    *out = w;
    return 0;
}

void group_windows_close(struct group *g, struct group_windows *w)
{
    if (--w->users == 0)
        close_idle(g, may_keep(g) ? w : NULL);
}

/* ---- asking ---- */

/* A rank of this process; -1: it is not in the group. */
struct place {
    int rank, size;
};

static int ask_mpi(SHMEM_Comm comm, struct place *place, struct brg_error *err)
{
    const struct mpi_interface *mpi;
    struct stream_net *net;
    int rc = mpi_join(&mpi, err);
    if (rc)
        return rc;
    if (!mpi->of_one_group(handle_of(comm, mpi)) || mpi->borrow(handle_of(comm, mpi), &net))
        return brg_error_set(err, -WRONG_COMM, "MPI has no such group of ranks");
    *place = (struct place){(int)net->rank, (int)net->size};
    mpi->release(net);
    return 0;
}

/* As `carry` has it where no hint says otherwise. */
static int ask_world(struct place *place, struct brg_error *err)
{
    uint32_t me, all;
    struct brg_error why = NO_FAILURE, ignored = NO_FAILURE;
    if (pgas_shmem_runs(&me, &all, &why) == 0) {
        *place = (struct place){(int)me, (int)all};
        return 0;
    }
    if (ask_mpi(SHMEM_COMM_WORLD, place, &ignored) == 0)
        return 0;
    *err = why; /* what an OpenSHMEM program lacks says more */
    return why.code;
}

static int ask_set(SHMEM_Comm comm, struct place *place, struct brg_error *err)
{
    uint32_t me, all, log_stride = set_log_stride(comm);
    int rc = pgas_shmem_runs(&me, &all, err);
    if (rc)
        return rc;
    int from = (int)me - (int)set_start(comm), size = (int)set_size(comm);
    int is_in =
        from >= 0 && (from >> log_stride) << log_stride == from && from >> log_stride < size;
    *place = (struct place){is_in ? from >> log_stride : -1, size};
    return 0;
}

static int ask(SHMEM_Comm comm, struct place *place, struct brg_error *err)
{
    *place = (struct place){0, 1};
    if (comm == SHMEM_COMM_SELF)
        return 0;
    if (comm == SHMEM_COMM_WORLD)
        return ask_world(place, err);
    if (kind_of(comm) == OF_MPI)
        return ask_mpi(comm, place, err);
    return kind_of(comm) == SET ? ask_set(comm, place, err) : no_group(comm, err);
}

int SHMEM_Comm_rank(SHMEM_Comm comm, int *rank)
{
    struct brg_error failure = NO_FAILURE;
    struct place place;
    if (!ask(comm, &place, &failure))
        *rank = place.rank;
    return shmemio_end(&failure);
}

int SHMEM_Comm_size(SHMEM_Comm comm, int *size)
{
    struct brg_error failure = NO_FAILURE;
    struct place place;
    if (!ask(comm, &place, &failure))
        *size = place.size;
    return shmemio_end(&failure);
}
