/* The seam between one-sided algorithms and what carries them: OpenSHMEM, MPI's windows, or nothing
 * (one process).
 *
 * Symmetric memory is allocated by all ranks of a group at once; the address that a rank has of its
 * own part names everybody's, from any byte of it on. Collective calls are made by all ranks of the
 * group in the same order, and all calls by one thread. What a rank put, and then made quiet, is
 * seen by every rank that has left a collective call which the first entered later. All return 0 or
 * -errno; collective ones fill *err, and give the same failure to every rank unless a rank died. */
#ifndef BRG_PGAS_PGAS_H
#define BRG_PGAS_PGAS_H

#include <stddef.h>
#include <stdint.h>

#include "brigade/error.h"

#define PGAS_VALUES 16

enum pgas_op {
    PGAS_MIN,
    PGAS_MAX,
    PGAS_SUM
};

struct pgas {
    const char *name; /* "one process", "windows", "OpenSHMEM": for people */
    uint32_t rank, size;
    uint32_t n_nodes;      /* whose ranks reach each other's memory: see pointer */
    const uint32_t *order; /* [size] ranks by (node, rank), or NULL: as they are numbered */

    /* Collective. `bytes` on each rank, the same number everywhere, aligned to 64; what they hold
     * is not said, so that only what is used takes memory. -ENOMEM */
    int (*allocate)(struct pgas *p, size_t bytes, void **memory, struct brg_error *err);
    /* Collective. */
    void (*release)(struct pgas *p, void *memory);
    /* Where this process reaches the byte of `rank` that is `there` here; NULL if it cannot. */
    void *(*pointer)(struct pgas *p, void *there, uint32_t rank);
    /* Begun at once; done when quiet returns. Until then `from` and `to` are left alone. */
    int (*put)(struct pgas *p, void *there, const void *from, size_t bytes, uint32_t rank);
    int (*get)(struct pgas *p, void *to, void *there, size_t bytes, uint32_t rank);
    int (*quiet)(struct pgas *p);
    /* Done at once. Atomic with other calls of this kind; `there` is aligned to 8. */
    int (*fetch_add)(struct pgas *p, uint64_t *there, uint64_t add, uint32_t rank,
                     uint64_t *before);

    /* Collective. values[i] becomes the least, greatest or sum of all ranks'; n <= PGAS_VALUES. */
    int (*reduce)(struct pgas *p, enum pgas_op op, int64_t *values, int n, struct brg_error *err);
    /* Collective. The bytes of `root` arrive in everybody's buf. */
    int (*broadcast)(struct pgas *p, void *buf, size_t bytes, uint32_t root, struct brg_error *err);
    /* Collective. Nothing of `allocate` may be left. */
    void (*close)(struct pgas *p);
};

struct io_world;

/* One process. -ENOMEM */
int pgas_single(struct pgas **p, struct brg_error *err);

/* Collective over the world, which stays open until after close. */
int pgas_windows(struct io_world *world, struct pgas **p, struct brg_error *err);

/* Collective. What an atomic addition in the memory of another node takes, as most nodes' leaders
 * find it or longer: *ns; 0 where there is one node, -1 where MPI makes no windows between them. */
int pgas_windows_cost(struct pgas *p, int64_t *ns, struct brg_error *err);

/* Local: ends one whose ranks are on one node, with all that was allocated. No rank uses it any
 * more. */
void pgas_windows_forget(struct pgas *p);

/* Collective over the `size` ranks start, start + 2^log_stride, ... of the OpenSHMEM that runs in
 * this process. -EINVAL where there is none, or where it has not been started. The first call is
 * for all ranks, unless pgas_shmem_reserve came before. */
int pgas_shmem(uint32_t start, unsigned log_stride, uint32_t size, struct pgas **p,
               struct brg_error *err);
/* Collective over all ranks: sets `bytes` of the symmetric heap aside for groups that are not all
 * ranks, if that has not been done. -ENOMEM */
int pgas_shmem_reserve(size_t bytes, struct brg_error *err);
/* Local: whether an OpenSHMEM runs here, and this rank's number among how many there are. */
int pgas_shmem_runs(uint32_t *rank, uint32_t *size, struct brg_error *err);

/* Collective. A failure (code 0: none) of the lowest rank that has one becomes everybody's *mine,
 * and is returned; its rank is filled in. */
int pgas_failure(struct pgas *p, struct brg_error *mine);

/* Collective. */
static inline int pgas_barrier(struct pgas *p, struct brg_error *err)
{
    int64_t nothing = 0;
    return p->reduce(p, PGAS_MIN, &nothing, 1, err);
}

#endif
