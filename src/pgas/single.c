/* One process: its own memory is everybody's. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "pgas/pgas.h"

static int single_allocate(struct pgas *p, size_t bytes, void **memory, struct brg_error *err)
{
    size_t room = (bytes + 63) & ~(size_t)63;
    (void)p;
    void *at = room < bytes ? NULL : aligned_alloc(64, room ? room : 64);
    if (!at)
        return brg_error_set(err, -ENOMEM, "no memory for %zu bytes of cache", bytes);
    *memory = at;
    return 0;
}

static void single_release(struct pgas *p, void *memory)
{
    (void)p;
    free(memory);
}

static void *single_pointer(struct pgas *p, void *there, uint32_t rank)
{
    (void)p, (void)rank;
    return there;
}

static int single_put(struct pgas *p, void *there, const void *from, size_t bytes, uint32_t rank)
{
    (void)p, (void)rank;
    memcpy(there, from, bytes);
    return 0;
}

static int single_get(struct pgas *p, void *to, void *there, size_t bytes, uint32_t rank)
{
    return single_put(p, to, there, bytes, rank);
}

static int single_quiet(struct pgas *p)
{
    (void)p;
    return 0;
}

static int single_fetch_add(struct pgas *p, uint64_t *there, uint64_t add, uint32_t rank,
                            uint64_t *before)
{
    (void)p, (void)rank;
    *before = *there;
    *there += add;
    return 0;
}

static int single_reduce(struct pgas *p, enum pgas_op op, int64_t *values, int n,
                         struct brg_error *err)
{
    (void)p, (void)op, (void)values, (void)n, (void)err;
    return 0;
}

static int single_broadcast(struct pgas *p, void *buf, size_t bytes, uint32_t root,
                            struct brg_error *err)
{
    (void)p, (void)buf, (void)bytes, (void)root, (void)err;
    return 0;
}

static void single_close(struct pgas *p)
{
    free(p);
}

int pgas_single(struct pgas **p, struct brg_error *err)
{
    struct pgas *self = malloc(sizeof *self);
    if (!self)
        return brg_error_set(err, -ENOMEM, "no memory for a group of one rank");
    *self = (struct pgas){.name = "one process",
                          .size = 1,
                          .n_nodes = 1,
                          .allocate = single_allocate,
                          .release = single_release,
                          .pointer = single_pointer,
                          .put = single_put,
                          .get = single_get,
                          .quiet = single_quiet,
                          .fetch_add = single_fetch_add,
                          .reduce = single_reduce,
                          .broadcast = single_broadcast,
                          .close = single_close};
    *p = self;
    return 0;
}
