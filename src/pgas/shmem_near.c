/* Meeting where all ranks of a group reach each other's memory: one node.
 *
 * Each writes what it brings on its own board and counts itself on that of the first, the hub. Who
 * comes last reads all of them, writes the outcome there, and lets everybody go by one word. Nobody
 * writes on his board again before that, and no outcome is written before all have come to the next
 * meeting, and so have read this one's.
 *
 * Who waits sleeps, but not for ever: somebody else's put may take this process's help. */
#include <sched.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "pgas/shmem_inside.h"
#include "world/area.h"

#define YIELD_NS UINT64_C(200000) /* most meetings are over before one could fall asleep and wake */
#define HELP_NS UINT64_C(50000)   /* between two helps meanwhile */
#define FIRST_NAP_NS UINT64_C(200000)
#define NAP_NS UINT64_C(3200000)

static void help(struct shmem_group *g)
{
    (void)shmem.long_atomic_fetch(&g->board->go, shmem.my_pe());
}

static void wait_for_end(struct shmem_group *g)
{
    _Atomic uint32_t *ended = &g->hub->ended;
    uint64_t began = brg_clock_ns(), helped = began, ns = FIRST_NAP_NS;
    uint32_t seen;
    while ((seen = atomic_load_explicit(ended, memory_order_acquire)) != g->near_met) {
        uint64_t now = brg_clock_ns();
        if (now - began >= YIELD_NS) {
            help(g);
            area_doze(ended, seen, ns);
            ns = ns * 2 > NAP_NS ? NAP_NS : ns * 2;
            continue;
        }
        if (now - helped >= HELP_NS) {
            help(g);
            helped = now;
        }
        sched_yield();
    }
}

static void *staged(struct shmem_board *board)
{
    return board->values[1];
}

static struct shmem_board *board_of(struct shmem_group *g, uint32_t rank)
{
    return g->pgas.pointer(&g->pgas, g->board, rank);
}

/* By the last one. */
static void conclude(struct shmem_group *g, enum pgas_op op, int n, size_t bytes, uint32_t root)
{
    size_t value_bytes = (size_t)n * sizeof(int64_t);
    int64_t values[PGAS_VALUES];
    shmem_copy(values, board_of(g, 0)->values[0], value_bytes);
    for (uint32_t rank = 1; n && rank < g->pgas.size; rank++)
        shmem_combine(op, values, board_of(g, rank)->values[0], n);
    shmem_copy(g->hub->outcome, values, value_bytes);
    shmem_copy(g->hub->outcome + value_bytes, staged(board_of(g, root)), bytes);
    atomic_store_explicit(&g->hub->ended, g->near_met, memory_order_release);
    area_wake(&g->hub->ended);
}

void shmem_meet_near(struct shmem_group *g, enum pgas_op op, int64_t *values, int n, void *share,
                     size_t bytes, uint32_t root)
{
    size_t value_bytes = (size_t)n * sizeof *values;
    g->near_met++;
    shmem_copy(g->board->values[0], values, value_bytes);
    if (g->pgas.rank == root)
        shmem_copy(staged(g->board), share, bytes);
    /* Also for what was put into others' memory before. */
    atomic_thread_fence(memory_order_seq_cst);
    uint32_t came = atomic_fetch_add(&g->hub->arrived, 1) + 1;
    if (came == g->near_met * g->pgas.size)
        conclude(g, op, n, bytes, root);
    else
        wait_for_end(g);
    shmem_copy(values, g->hub->outcome, value_bytes);
    if (g->pgas.rank != root)
        shmem_copy(share, g->hub->outcome + value_bytes, bytes);
    atomic_thread_fence(memory_order_seq_cst);
}
