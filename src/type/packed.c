/* See packed.h. A slot is taken once and not given up: where two types want the same, the later one
 * is not kept. */
#include "type/packed.h"

#include <stdatomic.h>

#define SLOTS 64u
#define TAKEN ((mpi_handle)-1) /* and not filled yet */

static struct {
    _Atomic mpi_handle type; /* 0: free */
    uint64_t bytes;
} slots[SLOTS];

static size_t slot_of(mpi_handle type)
{
    return (type * UINT64_C(0x9e3779b97f4a7c15)) >> 58;
}

uint64_t packed_bytes(mpi_handle type)
{
    size_t i = slot_of(type);
    return atomic_load_explicit(&slots[i].type, memory_order_acquire) == type ? slots[i].bytes : 0;
}

void packed_learn(mpi_handle type, const struct mpi_contents *c)
{
    mpi_handle none = 0;
    size_t i = slot_of(type);
    if (c->combiner != COMBINER_NAMED || c->size <= 0 || c->lb || c->true_lb ||
        c->size != c->extent || c->size != c->true_extent || !type || type == TAKEN ||
        !atomic_compare_exchange_strong(&slots[i].type, &none, TAKEN))
        return;
    slots[i].bytes = (uint64_t)c->size;
    atomic_store_explicit(&slots[i].type, type, memory_order_release);
}
