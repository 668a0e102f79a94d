/* What the parts of the back end over OpenSHMEM share. */
#ifndef BRG_PGAS_SHMEM_INSIDE_H
#define BRG_PGAS_SHMEM_INSIDE_H

#include <stdatomic.h>
#include <string.h>

#include "pgas/pgas.h"

/* The library's calls, found at run time; they have one binary interface. X(type, name, parameters)
 */
#define SHMEM_CALLS(X)                                       \
    X(int, my_pe, (void))                                    \
    X(int, n_pes, (void))                                    \
    X(void *, align, (size_t, size_t))                       \
    X(void, free, (void *))                                  \
    X(void *, ptr, (const void *, int))                      \
    X(void, putmem, (void *, const void *, size_t, int))     \
    X(void, putmem_nbi, (void *, const void *, size_t, int)) \
    X(void, getmem_nbi, (void *, const void *, size_t, int)) \
    X(void, fence, (void))                                   \
    X(void, quiet, (void))                                   \
    X(void, barrier_all, (void))                             \
    X(long, long_atomic_swap, (long *, long, int))           \
    X(long, long_atomic_fetch, (const long *, int))          \
    X(long, long_atomic_fetch_add, (long *, long, int))

extern struct shmem_calls {
#define X(type, name, parameters) type(*name) parameters;
    SHMEM_CALLS(X)
#undef X
} shmem;

#define SHMEM_LEVELS 32
#define SHMEM_OUTCOME_BYTES 4096
#define SHMEM_SHARE_BYTES ((SHMEM_LEVELS - 1) * PGAS_VALUES * sizeof(int64_t)) /* 3,968 */

/* In symmetric memory, one a group: a meeting's values come from the children in a tree of the
 * ranks, its outcome from the parent. Flags hold the number of the last meeting heard of. Where all
 * ranks reach each other's, values[0] is what this one brings, the rest of values what it shares,
 * and `arrived`, `ended` and `outcome` count on the board of the group's first. */
struct shmem_board {
    long came[SHMEM_LEVELS];
    long go;
    int64_t values[SHMEM_LEVELS][PGAS_VALUES];
    char outcome[SHMEM_OUTCOME_BYTES];
    _Alignas(64) _Atomic uint32_t arrived; /* in all meetings */
    _Alignas(64) _Atomic uint32_t ended;   /* meetings */
};

/* A part of the pool that a group has; kept in the order of `from`. */
struct shmem_block {
    struct shmem_block *next;
    size_t from, bytes;
};

struct shmem_group {
    struct pgas pgas;
    uint32_t start;
    unsigned log_stride;
    int everybody; /* all ranks there are: may use the library's own allocation */
    int slot;      /* of its board */
    struct shmem_board *board;
    long met;                /* over the tree */
    struct shmem_board *hub; /* of the first rank, where all reach each other's memory; or NULL */
    uint32_t near_met;       /* there */
};

static inline int shmem_pe(const struct shmem_group *g, uint32_t rank)
{
    return (int)(g->start + (rank << g->log_stride));
}

/* Of nothing, too, which lies nowhere. */
static inline void shmem_copy(void *to, const void *from, size_t bytes)
{
    if (bytes)
        memcpy(to, from, bytes);
}

/* Sleeps between looks until *flag, which others set by long_atomic_swap, is at least `value`.
 * (long_atomic_set swaps in Open MPI 4, too, and crashes over UCX in 6.0rc2.) */
void shmem_wait(const long *flag, long value);

/* Collective over the group. values: combined over all ranks, n may be 0; then *share (bytes <=
 * SHMEM_SHARE_BYTES) of `root` comes to all. Either may be empty. */
void shmem_meet(struct shmem_group *g, enum pgas_op op, int64_t *values, int n, void *share,
                size_t bytes, uint32_t root);
/* The same in one of two ways: by puts, whoever the ranks are; or, with a hub, in one place. */
void shmem_meet_tree(struct shmem_group *g, enum pgas_op op, int64_t *values, int n, void *share,
                     size_t bytes, uint32_t root);
void shmem_meet_near(struct shmem_group *g, enum pgas_op op, int64_t *values, int n, void *share,
                     size_t bytes, uint32_t root);
void shmem_combine(enum pgas_op op, int64_t *values, const int64_t *others, int n);

/* The pool: what groups that are not everybody need of symmetric memory. */

/* Collective over all ranks. Boards, once; and memory for groups, once. -ENOMEM */
int shmem_pool_start(void);
int shmem_pool_reserve(size_t bytes);
int shmem_pool_started(void);
/* Collective over the group: a copy of it with a board that no other group of any of its ranks has;
 * NULL where there is none. */
struct shmem_group *shmem_pool_join(const struct shmem_group *like);
/* Local, after a last meeting: ends the group. */
void shmem_pool_leave(struct shmem_group *g);
/* Collective over the group. NULL on all ranks where there is no room. */
void *shmem_pool_take(struct shmem_group *g, size_t bytes);
/* Local, when no rank of the group uses it any more. */
void shmem_pool_give(void *memory);

#endif
