/* Meeting over puts alone.
 *
 * OpenSHMEM's own collective calls want symmetric work arrays for each group, are not the same in
 * its versions (active sets, teams), and spin. This is a tree of the ranks: values go up, the
 * outcome comes down. Nobody begins the next meeting before he has the outcome of this one, and
 * that is sent only when all have come: so a cell is never written before it was read, whatever the
 * root of the next.
 *
 * Flags are set atomically. A put may store the same bytes twice (memcpy does, of eight): who saw
 * the first of two stores, and cleared the flag, would find it set again by the second. */
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "pgas/shmem_inside.h"
#include "world/area.h"

#define POLL_NS UINT64_C(20000)
#define FIRST_NAP_NS UINT64_C(5000)
#define NAP_NS UINT64_C(200000)

/* Flags grow by less than 2^32 while anybody waits for one. */
static _Atomic uint32_t *low_word(const long *flag)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return (_Atomic uint32_t *)flag + 1;
#else
    return (_Atomic uint32_t *)flag;
#endif
}

/* A nap ends early where who sets the flag reaches it (send). The atomic reading lets the library
 * move on what others put here, where that takes its help. */
void shmem_wait(const long *flag, long value)
{
    uint64_t began = brg_clock_ns(), ns = FIRST_NAP_NS;
    int me = shmem.my_pe();
    while (*(const volatile long *)flag < value && shmem.long_atomic_fetch(flag, me) < value) {
        if (brg_clock_ns() - began < POLL_NS) {
            sched_yield();
            continue;
        }
        long seen = *(const volatile long *)flag;
        if (seen < value)
            area_doze(low_word(flag), (uint32_t)seen, ns);
        ns = ns * 2 > NAP_NS ? NAP_NS : ns * 2;
    }
    atomic_thread_fence(memory_order_seq_cst);
}

void shmem_combine(enum pgas_op op, int64_t *values, const int64_t *others, int n)
{
    for (int i = 0; i < n; i++) {
        int64_t a = values[i], b = others[i];
        values[i] = op == PGAS_SUM   ? (int64_t)((uint64_t)a + (uint64_t)b)
                    : op == PGAS_MIN ? (b < a ? b : a)
                                     : (b > a ? b : a);
    }
}

/* Everything that is put, then the flag: in this order there. */
static void send(const struct shmem_group *g, void *there, const void *from, size_t bytes,
                 long *flag, uint32_t rank)
{
    int pe = shmem_pe(g, rank);
    if (bytes)
        shmem.putmem(there, from, bytes, pe);
    shmem.fence();
    shmem.long_atomic_swap(flag, g->met, pe);
    const long *near = shmem.ptr(flag, pe);
    if (near)
        area_wake(low_word(near));
}

void shmem_meet_tree(struct shmem_group *g, enum pgas_op op, int64_t *values, int n, void *share,
                     size_t bytes, uint32_t root)
{
    uint32_t size = g->pgas.size, me = (g->pgas.rank + size - root) % size;
    struct shmem_board *board = g->board;
    uint32_t bit = 1;
    int level = 0;
    size_t value_bytes = (size_t)n * sizeof *values;
    g->met++;
    atomic_thread_fence(memory_order_seq_cst);
    for (; bit < size && !(me & bit); bit <<= 1, level++)
        if ((me | bit) < size) {
            shmem_wait(&board->came[level], g->met);
            shmem_combine(op, values, board->values[level], n);
        }
    if (me) {
        send(g, board->values[level], values, value_bytes, &board->came[level],
             ((me & ~bit) + root) % size);
        shmem_wait(&board->go, g->met);
        shmem_copy(values, board->outcome, value_bytes);
        shmem_copy(share, board->outcome + value_bytes, bytes);
    } else {
        shmem_copy(board->outcome, values, value_bytes);
        shmem_copy(board->outcome + value_bytes, share, bytes);
    }
    while (bit >>= 1)
        if ((me | bit) < size)
            send(g, board->outcome, board->outcome, value_bytes + bytes, &board->go,
                 ((me | bit) + root) % size);
}

void shmem_meet(struct shmem_group *g, enum pgas_op op, int64_t *values, int n, void *share,
                size_t bytes, uint32_t root)
{
    if (g->hub)
        shmem_meet_near(g, op, values, n, share, bytes, root);
    else
        shmem_meet_tree(g, op, values, n, share, bytes, root);
}
