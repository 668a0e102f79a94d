/* Over the ranks of a world. On a node they share memory, and moving is copying; windows of MPI
 * reach the other nodes, over the same memory.
 *
 * Where there is one node, waiting sleeps (world_minimum). Where there are several, MPI may need a
 * rank's help to carry out what others put there, so who waits keeps asking MPI, with naps between
 * (world_least): a put to a rank that sleeps would otherwise wait for its next tick. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "pgas/pgas.h"
#include "world/fault.h"
#include "world/world.h"

#define PAGE ((size_t)4096)
#define BEGUN 16u
#define COST_TRIES 5 /* the first makes the connection */

/* The part of each rank of a node, one after another, in an area of its own. */
struct memory {
    struct memory *next;
    struct io_area *area;
    char *mine;
    size_t bytes;
    void *window;          /* NULL: one node */
    uint32_t n_begun;      /* ranks that something is under way with, */
    uint32_t begun[BEGUN]; /* each once */
};

struct windows {
    struct pgas pgas;
    struct io_world *world;
    const struct mpi_windows *mpi; /* NULL: one node, or no MPI has them */
    struct memory *memories;
    uint64_t *sums; /* symmetric, PGAS_VALUES of them; made by the first sum */
};

static struct windows *self_of(struct pgas *p)
{
    return (struct windows *)p;
}

/* The memory that has a byte of this rank, and where in it that is. */
static struct memory *memory_of(struct windows *self, const void *byte, uint64_t *at)
{
    for (struct memory *m = self->memories; m; m = m->next)
        if ((const char *)byte >= m->mine && (const char *)byte < m->mine + m->bytes) {
            *at = (uint64_t)((const char *)byte - m->mine);
            return m;
        }
    return NULL;
}

static void *windows_pointer(struct pgas *p, void *there, uint32_t rank)
{
    struct windows *self = self_of(p);
    const struct io_world *w = self->world;
    uint64_t at;
    const struct memory *m = memory_of(self, there, &at);
    if (!m || w->node_of[rank] != w->node)
        return NULL;
    return m->area->room + w->local_of[rank] * m->bytes + at;
}

/* ---- all together ---- */

/* What broke the world, or what MPI said. */
static int broken(struct io_world *w, int rc, struct brg_error *err)
{
    int whole = 0;
    if (rc != -EOWNERDEAD)
        atomic_compare_exchange_strong(&w->area->head->code, &whole, rc);
    return world_broke(w, err);
}

static int least(struct windows *self, int64_t *values, int n, struct brg_error *err)
{
    struct io_world *w = self->world;
    if (w->n_nodes == 1)
        return world_minimum(w, values, n, err);
    if (w->broken.code)
        return world_broke(w, err);
    io_fault_kill(IO_FAULT_MEET);
    int rc = world_least(w, w->all, values, n);
    if (rc)
        return broken(w, rc, err);
    for (struct memory *m = self->memories; !rc && m; m = m->next)
        rc = self->mpi->sync(m->window);
    return rc ? broken(w, rc, err) : 0;
}

static int windows_fetch_add(struct pgas *p, uint64_t *there, uint64_t add, uint32_t rank,
                             uint64_t *before)
{
    struct windows *self = self_of(p);
    uint64_t at;
    if (self->mpi) {
        struct memory *m = memory_of(self, there, &at);
        return m ? self->mpi->fetch_add(m->window, add, rank, at, before) : -EFAULT;
    }
    _Atomic uint64_t *cell = windows_pointer(p, there, rank);
    if (!cell)
        return -EFAULT;
    *before = atomic_fetch_add(cell, add);
    return 0;
}

/* Cells of rank 0, which are zero between sums. */
static int have_sums(struct windows *self, struct brg_error *err)
{
    struct pgas *p = &self->pgas;
    void *sums;
    int rc = self->sums ? 0 : p->allocate(p, PGAS_VALUES * sizeof *self->sums, &sums, err);
    if (rc || self->sums)
        return rc;
    self->sums = sums;
    memset(sums, 0, PGAS_VALUES * sizeof *self->sums);
    return pgas_barrier(p, err);
}

static int sum(struct windows *self, int64_t *values, int n, struct brg_error *err)
{
    struct pgas *p = &self->pgas;
    uint64_t before;
    int64_t good = 1;
    int rc = have_sums(self, err);
    if (rc)
        return rc;
    for (int i = 0; i < n; i++)
        if (windows_fetch_add(p, self->sums + i, (uint64_t)values[i], 0, &before))
            good = 0;
    rc = least(self, &good, 1, err);
    if (rc)
        return rc;
    if (!good)
        return brg_error_set(err, -ECOMM, "MPI's windows failed between the ranks of the file");
    if (p->rank == 0) {
        memcpy(values, self->sums, (size_t)n * sizeof *values);
        memset(self->sums, 0, (size_t)n * sizeof *values);
    }
    return world_share(self->world, values, (size_t)n * sizeof *values, 0, err);
}

static int windows_reduce(struct pgas *p, enum pgas_op op, int64_t *values, int n,
                          struct brg_error *err)
{
    struct windows *self = self_of(p);
    if (op == PGAS_SUM)
        return sum(self, values, n, err);
    /* -1 - x, as -x is not defined for the least of all numbers */
    for (int i = 0; op == PGAS_MAX && i < n; i++)
        values[i] = -1 - values[i];
    int rc = least(self, values, n, err);
    for (int i = 0; op == PGAS_MAX && i < n; i++)
        values[i] = -1 - values[i];
    return rc;
}

static int windows_broadcast(struct pgas *p, void *buf, size_t bytes, uint32_t root,
                             struct brg_error *err)
{
    return world_share(self_of(p)->world, buf, bytes, root, err);
}

/* ---- memory ---- */

static void drop(struct windows *self, struct memory *m)
{
    if (m->window)
        self->mpi->close(m->window);
    if (m->area && !self->world->broken.code) /* messages may still come into it */
        area_destroy(m->area);
    free(m);
}

static int make(struct windows *self, size_t bytes, struct memory *m)
{
    struct io_world *w = self->world;
    int64_t code = 0;
    struct brg_error err;
    m->bytes = (bytes + PAGE - 1) & ~(PAGE - 1);
    if (w->n_nodes > 1 && !self->mpi)
        code = -ENOSYS;
    else if (m->bytes < bytes || m->bytes > SIZE_MAX / 2 / w->n_local)
        code = -ENOMEM;
    int rc = least(self, &code, 1, &err);
    rc = rc ? rc : (int)code;
    if (!rc)
        rc = world_area(w, m->bytes * w->n_local, &m->area);
    if (rc)
        return rc;
    m->mine = m->area->room + w->local * m->bytes;
    if (!self->mpi)
        return 0;
    code = self->mpi->open(w->all, m->mine, m->bytes, &m->window);
    rc = least(self, &code, 1, &err);
    return rc ? rc : (int)code;
}

static int windows_allocate(struct pgas *p, size_t bytes, void **memory, struct brg_error *err)
{
    struct windows *self = self_of(p);
    struct memory *m = calloc(1, sizeof *m);
    int64_t have = m != NULL;
    int rc = least(self, &have, 1, err);
    if (!rc)
        rc = have ? make(self, bytes, m) : -ENOMEM;
    if (self->world->broken.code)
        rc = world_broke(self->world, err);
    else if (rc == -ECOMM)
        brg_error_set(err, rc,
                      "MPI makes no window between these nodes: another way to carry it may (over "
                      "TCP, Open MPI 4 needs OMPI_MCA_osc=^rdma, and Open MPI 5 osc/rdma), and "
                      "seam=messages needs none");
    else if (rc == -ENOSYS)
        brg_error_set(err, rc,
                      "this MPI lacks windows (MPI 3), which ranks on several nodes need to reach "
                      "each other's memory; seam=messages needs none");
    else if (rc)
        brg_error_system(err, rc, "no memory for %zu bytes of cache on every rank", bytes);
    if (rc) {
        if (m)
            drop(self, m);
        return rc;
    }
    m->next = self->memories;
    self->memories = m;
    *memory = m->mine;
    return 0;
}

static void windows_release(struct pgas *p, void *memory)
{
    struct windows *self = self_of(p);
    struct memory **at = &self->memories;
    struct brg_error err;
    while (*at && (*at)->mine != memory)
        at = &(*at)->next;
    struct memory *m = *at;
    if (!m)
        return;
    pgas_barrier(p,
                 &err); /* whoever still moves bytes there comes first; a broken world does not */
    *at = m->next;
    drop(self, m);
}

/* ---- moving ---- */

/* A flush asks its target even where nothing is under way: so those that something is are known. */
static int flush(struct windows *self, struct memory *m)
{
    int rc = 0;
    while (!rc && m->n_begun)
        rc = self->mpi->flush(m->window, m->begun[--m->n_begun]);
    return rc ? rc : self->mpi->sync(m->window);
}

static int begin(struct windows *self, struct memory *m, uint32_t rank)
{
    for (uint32_t i = 0; i < m->n_begun; i++)
        if (m->begun[i] == rank)
            return 0;
    int rc = m->n_begun == BEGUN ? flush(self, m) : 0;
    m->begun[m->n_begun++] = rank;
    return rc;
}

static int windows_put(struct pgas *p, void *there, const void *from, size_t bytes, uint32_t rank)
{
    struct windows *self = self_of(p);
    void *near = windows_pointer(p, there, rank);
    uint64_t at;
    if (near) {
        memcpy(near, from, bytes);
        return 0;
    }
    struct memory *m = memory_of(self, there, &at);
    int rc = m ? begin(self, m, rank) : -EFAULT;
    return rc ? rc : self->mpi->put(m->window, from, bytes, rank, at);
}

static int windows_get(struct pgas *p, void *to, void *there, size_t bytes, uint32_t rank)
{
    struct windows *self = self_of(p);
    const void *near = windows_pointer(p, there, rank);
    uint64_t at;
    if (near) {
        memcpy(to, near, bytes);
        return 0;
    }
    struct memory *m = memory_of(self, there, &at);
    int rc = m ? begin(self, m, rank) : -EFAULT;
    return rc ? rc : self->mpi->get(m->window, to, bytes, rank, at);
}

static int windows_quiet(struct pgas *p)
{
    struct windows *self = self_of(p);
    int rc = 0;
    atomic_thread_fence(memory_order_seq_cst);
    for (struct memory *m = self->memories; !rc && m && self->mpi; m = m->next)
        rc = flush(self, m);
    return rc;
}

static void windows_close(struct pgas *p)
{
    if (self_of(p)->sums)
        windows_release(p, self_of(p)->sums);
    free(p);
}

int pgas_windows_cost(struct pgas *p, int64_t *ns, struct brg_error *err)
{
    const struct io_world *w = self_of(p)->world;
    const uint32_t peer = w->leader_of[(w->node + 1) % w->n_nodes];
    uint64_t before;
    void *cell;
    *ns = 0;
    if (w->n_nodes == 1)
        return 0;
    int rc = windows_allocate(p, sizeof before, &cell, err);
    if ((rc == -ECOMM || rc == -ENOSYS) && !w->broken.code) {
        *ns = -1;
        return 0;
    }
    if (rc)
        return rc;
    for (int i = 0; w->local == 0 && i < COST_TRIES; i++) {
        uint64_t began_ns = brg_clock_ns();
        rc = windows_fetch_add(p, cell, 0, peer, &before);
        int64_t took_ns = rc ? INT64_MAX : (int64_t)(brg_clock_ns() - began_ns);
        *ns = i == 0 || took_ns < *ns ? took_ns : *ns;
    }
    rc = windows_reduce(p, PGAS_MAX, ns, 1, err);
    windows_release(p, cell);
    return rc;
}

void pgas_windows_forget(struct pgas *p)
{
    struct windows *self = self_of(p);
    for (struct memory *m = self->memories, *next; m; m = next) {
        next = m->next;
        drop(self, m);
    }
    free(self);
}

int pgas_windows(struct io_world *world, struct pgas **p, struct brg_error *err)
{
    struct windows *self = malloc(sizeof *self);
    int64_t code = self ? 0 : -ENOMEM;
    int rc = world_minimum(world, &code, 1, err);
    if (!rc && code)
        rc = brg_error_set(err, (int)code, "no memory for a group of ranks");
    if (rc) {
        free(self);
        return rc;
    }
    *self = (struct windows){.pgas = {.name = "windows",
                                      .rank = world->rank,
                                      .size = world->size,
                                      .n_nodes = world->n_nodes,
                                      .order = world->order,
                                      .allocate = windows_allocate,
                                      .release = windows_release,
                                      .pointer = windows_pointer,
                                      .put = windows_put,
                                      .get = windows_get,
                                      .quiet = windows_quiet,
                                      .fetch_add = windows_fetch_add,
                                      .reduce = windows_reduce,
                                      .broadcast = windows_broadcast,
                                      .close = windows_close},
                             .world = world,
                             .mpi = world->n_nodes > 1 ? world->mpi->windows : NULL};
    *p = &self->pgas;
    return 0;
}
