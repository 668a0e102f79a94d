/* Symmetric memory for groups.
 *
 * OpenSHMEM allocates for all ranks at once, and a group is some of them. So all ranks set a pool
 * aside together (boards first, memory when groups are about to be made), and a group takes what is
 * free in it at the same place on each of its ranks. To agree on a board before they have one, its
 * ranks tell the first of them which boards are free there, each in a cell of its own, and hear
 * which one it is. A rank joins one group at a time. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "pgas/shmem_inside.h"

#define BOARDS 62
#define ALL_FREE ((1L << BOARDS) - 1)
#define TOLD (1L << BOARDS) /* so that a rank without a free board says something as well */
#define ALIGN ((size_t)64)

static struct {
    struct shmem_board *boards; /* [BOARDS] */
    long *answer;               /* number of the board + 1; LONG_MAX: there is none */
    long *told;                 /* [ranks] */
    char *heap;
    size_t bytes;
    long free; /* boards that no group of this rank has */
    struct shmem_block *blocks;
    struct shmem_group groups[BOARDS]; /* by board */
} pool;

int shmem_pool_started(void)
{
    return pool.boards != NULL;
}

int shmem_pool_start(void)
{
    size_t ranks = (size_t)shmem.n_pes();
    size_t head = BOARDS * sizeof *pool.boards + (1 + ranks) * sizeof *pool.told;
    void *all = shmem.align(ALIGN, head);
    if (!all)
        return -ENOMEM;
    memset(all, 0, head);
    pool.boards = all;
    pool.answer = (long *)(pool.boards + BOARDS);
    pool.told = pool.answer + 1;
    pool.free = ALL_FREE;
    shmem.barrier_all();
    return 0;
}

int shmem_pool_reserve(size_t bytes)
{
    int rc = pool.boards ? 0 : shmem_pool_start();
    if (rc || pool.heap)
        return rc;
    pool.heap = shmem.align(ALIGN, bytes);
    pool.bytes = pool.heap ? bytes : 0;
    return pool.heap ? 0 : -ENOMEM;
}

/* The first rank's part. */
static long choose(const struct shmem_group *g)
{
    long free = pool.free;
    for (uint32_t rank = 1; rank < g->pgas.size; rank++) {
        long *told = &pool.told[shmem_pe(g, rank)];
        shmem_wait(told, 1);
        free &= *told;
        *told = 0;
    }
    long answer = free ? __builtin_ctzl((unsigned long)free) + 1 : LONG_MAX;
    for (uint32_t rank = 1; rank < g->pgas.size; rank++)
        shmem.long_atomic_swap(pool.answer, answer, shmem_pe(g, rank));
    return answer;
}

static long ask(const struct shmem_group *g)
{
    shmem.long_atomic_swap(&pool.told[shmem.my_pe()], pool.free | TOLD, shmem_pe(g, 0));
    shmem_wait(pool.answer, 1);
    long answer = *pool.answer;
    *pool.answer = 0;
    return answer;
}

struct shmem_group *shmem_pool_join(const struct shmem_group *like)
{
    long answer = like->pgas.rank ? ask(like) : choose(like);
    if (answer > BOARDS)
        return NULL;
    int slot = (int)answer - 1;
    struct shmem_group *g = &pool.groups[slot];
    *g = *like;
    g->slot = slot;
    g->board = &pool.boards[slot];
    pool.free &= ~(1L << slot);
    return g;
}

void shmem_pool_leave(struct shmem_group *g)
{
    memset(g->board, 0, sizeof *g->board);
    pool.free |= 1L << g->slot;
}

/* Behind whatever any of the group's ranks has: places are given back in any order, and what is
 * given back last is free last. */
void *shmem_pool_take(struct shmem_group *g, size_t bytes)
{
    struct shmem_block **end = &pool.blocks, *block = malloc(sizeof *block);
    int64_t from = 0;
    for (; *end; end = &(*end)->next)
        from = (int64_t)((*end)->from + (*end)->bytes);
    if (!block)
        from = INT64_MAX;
    shmem_meet(g, PGAS_MAX, &from, 1, NULL, 0, 0);
    if ((uint64_t)from > pool.bytes || bytes > pool.bytes - (size_t)from) {
        free(block);
        return NULL;
    }
    *block = (struct shmem_block){.from = (size_t)from, .bytes = (bytes + ALIGN - 1) & -ALIGN};
    *end = block;
    return pool.heap + from;
}

void shmem_pool_give(void *memory)
{
    struct shmem_block **at = &pool.blocks, *block;
    while (*at && pool.heap + (*at)->from != memory)
        at = &(*at)->next;
    if ((block = *at)) {
        *at = block->next;
        free(block);
    }
}
