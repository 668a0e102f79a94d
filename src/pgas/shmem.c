/* Over the OpenSHMEM of this process. A rank that dies takes the job with it: OpenSHMEM knows no
 * other way, and its launcher ends the others. */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "pgas/shmem_inside.h"

struct shmem_calls shmem;

static struct shmem_group *group_of(struct pgas *p)
{
    return (struct shmem_group *)p;
}

/* ---- all together ---- */

static int group_reduce(struct pgas *p, enum pgas_op op, int64_t *values, int n,
                        struct brg_error *err)
{
    (void)err;
    shmem_meet(group_of(p), op, values, n, NULL, 0, 0);
    return 0;
}

static int group_broadcast(struct pgas *p, void *buf, size_t bytes, uint32_t root,
                           struct brg_error *err)
{
    (void)err;
    for (size_t done = 0, n; done < bytes; done += n) {
        n = bytes - done < SHMEM_SHARE_BYTES ? bytes - done : SHMEM_SHARE_BYTES;
        shmem_meet(group_of(p), PGAS_MIN, NULL, 0, (char *)buf + done, n, root);
    }
    return 0;
}

static int no_memory(size_t bytes, struct brg_error *err)
{
    return brg_error_set(err, -ENOMEM,
                         "the symmetric heap has no %zu bytes left for a cache: a larger heap "
                         "(SHMEM_SYMMETRIC_SIZE) or a smaller segment takes it",
                         bytes);
}

static int group_allocate(struct pgas *p, size_t bytes, void **memory, struct brg_error *err)
{
    struct shmem_group *g = group_of(p);
    size_t room = bytes ? bytes : 1;
    void *at = g->everybody ? shmem.align(64, room) : shmem_pool_take(g, room);
    if (!at)
        return no_memory(bytes, err);
    *memory = at;
    return pgas_barrier(p, err);
}

static void group_release(struct pgas *p, void *memory)
{
    struct brg_error err;
    pgas_barrier(p, &err); /* whoever still moves bytes there comes first */
    if (group_of(p)->everybody)
        shmem.free(memory);
    else
        shmem_pool_give(memory);
}

/* ---- moving ---- */

static void *group_pointer(struct pgas *p, void *there, uint32_t rank)
{
    return rank == p->rank ? there : shmem.ptr(there, shmem_pe(group_of(p), rank));
}

static int group_put(struct pgas *p, void *there, const void *from, size_t bytes, uint32_t rank)
{
    shmem.putmem_nbi(there, from, bytes, shmem_pe(group_of(p), rank));
    return 0;
}

static int group_get(struct pgas *p, void *to, void *there, size_t bytes, uint32_t rank)
{
    shmem.getmem_nbi(to, there, bytes, shmem_pe(group_of(p), rank));
    return 0;
}

static int group_quiet(struct pgas *p)
{
    (void)p;
    atomic_thread_fence(memory_order_seq_cst);
    shmem.quiet();
    return 0;
}

static int group_fetch_add(struct pgas *p, uint64_t *there, uint64_t add, uint32_t rank,
                           uint64_t *before)
{
    *before = (uint64_t)shmem.long_atomic_fetch_add((long *)there, (long)add,
                                                    shmem_pe(group_of(p), rank));
    return 0;
}

/* Over the tree: the hub is cleared here, and nobody may still look at it. */
static void group_close(struct pgas *p)
{
    int64_t nothing = 0;
    shmem_meet_tree(group_of(p), PGAS_MIN, &nothing, 1, NULL, 0, 0);
    shmem_pool_leave(group_of(p));
}

/* ---- opening ---- */

/* OpenSHMEM says so from 1.6 on; Open MPI has a variable. Where neither is there, who calls us must
 * have started it. */
static int is_started(void *process)
{
    void (*ask)(int *);
    int started = 1;
    const char *flag = dlsym(process, "oshmem_shmem_initialized");
    *(void **)&ask = dlsym(process, "shmem_query_initialized");
    if (ask)
        ask(&started);
    else if (flag)
        started = *flag != 0; /* a bool */
    return started;
}

static int find_calls(struct brg_error *err)
{
    void *process = shmem.quiet ? NULL : dlopen(NULL, RTLD_NOW);
    if (shmem.quiet)
        return 0;
    struct shmem_calls found;
#define X(type, name, parameters)                                                               \
    *(void **)&found.name = dlsym(process, "shmem_" #name);                                     \
    if (!found.name)                                                                            \
        return brg_error_set(err, -EINVAL,                                                      \
                             "this process has no OpenSHMEM 1.4 (shmem_" #name " is missing): " \
                             "build the program with oshcc");
    SHMEM_CALLS(X)
#undef X
    if (!is_started(process))
        return brg_error_set(err, -EINVAL, "OpenSHMEM has not been started: call shmem_init first");
    shmem = found;
    return 0;
}

/* A node is known by the least of its ranks. */
static void count_nodes(struct shmem_group *g)
{
    uint32_t least = 0;
    while (least < g->pgas.rank && !shmem.ptr(g->board, shmem_pe(g, least)))
        least++;
    int64_t n = least == g->pgas.rank;
    shmem_meet_tree(g, PGAS_SUM, &n, 1, NULL, 0, 0);
    g->pgas.n_nodes = (uint32_t)n;
    if (n == 1 && !getenv("BRIGADE_SHMEM_TREE"))
        g->hub = g->pgas.pointer(&g->pgas, g->board, 0);
}

static int check(uint32_t start, unsigned log_stride, uint32_t size, int *rank,
                 struct brg_error *err)
{
    int me = shmem.my_pe(), all = shmem.n_pes();
    if (size == 0 || log_stride > 31 ||
        start + ((uint64_t)(size - 1) << log_stride) >= (uint64_t)all)
        return brg_error_set(
            err, -EINVAL,
            "a group of %u ranks from %u on, 2^%u apart, is not among the %d ranks "
            "of this job",
            size, start, log_stride, all);
    *rank = (me - (int)start) >> log_stride;
    if (me < (int)start || *rank >= (int)size || (int)start + (*rank << log_stride) != me)
        return brg_error_set(err, -EINVAL, "rank %d is not in the group it opens a file on", me);
    return 0;
}

int pgas_shmem_runs(uint32_t *rank, uint32_t *size, struct brg_error *err)
{
    int rc = find_calls(err);
    if (rc)
        return rc;
    *rank = (uint32_t)shmem.my_pe();
    *size = (uint32_t)shmem.n_pes();
    return 0;
}

int pgas_shmem_reserve(size_t bytes, struct brg_error *err)
{
    int rc = find_calls(err);
    return rc ? rc : shmem_pool_reserve(bytes) ? no_memory(bytes, err) : 0;
}

int pgas_shmem(uint32_t start, unsigned log_stride, uint32_t size, struct pgas **p,
               struct brg_error *err)
{
    int rank = 0, rc = find_calls(err);
    rc = rc ? rc : check(start, log_stride, size, &rank, err);
    if (rc)
        return rc;
    int everybody = size == (uint32_t)shmem.n_pes();
    if (!shmem_pool_started() && !everybody)
        return brg_error_set(err, -EINVAL,
                             "the first group must be that of all ranks: they set memory aside for "
                             "all others");
    if (!shmem_pool_started() && shmem_pool_start())
        return no_memory(sizeof(struct shmem_board), err);
    struct shmem_group like = {.pgas = {.name = "OpenSHMEM",
                                        .rank = (uint32_t)rank,
                                        .size = size,
                                        .allocate = group_allocate,
                                        .release = group_release,
                                        .pointer = group_pointer,
                                        .put = group_put,
                                        .get = group_get,
                                        .quiet = group_quiet,
                                        .fetch_add = group_fetch_add,
                                        .reduce = group_reduce,
                                        .broadcast = group_broadcast,
                                        .close = group_close},
                               .start = start,
                               .log_stride = log_stride,
                               .everybody = everybody};
    struct shmem_group *g = shmem_pool_join(&like);
    if (!g)
        return brg_error_set(err, -EMFILE,
                             "this rank or another is in too many groups: close some");
    count_nodes(g);
    *p = &g->pgas;
    return 0;
}
