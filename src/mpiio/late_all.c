/* See late_all.h. */
#include "mpiio/late_all.h"

#include "base/error.h"
#include "store/store.h"

/* All ranks have come: one of each node does it, and all hear the worst of what came of that. The
 * first meeting says whether all can, and want the same. */
static int one_of_each_node(struct file *f, int64_t able, int64_t size,
                            int (*act)(struct io_store *, uint64_t, struct brg_error *), int *code)
{
    struct io_world *w = f->all.world;
    struct brg_error failure;
    int64_t v[] = {able, size, -size}, worst = 0;
    if (world_minimum(w, v, 3, &failure) || !v[0] || v[1] != -v[2])
        return 0;
    if (w->local == 0)
        worst = act(f->all.store, (uint64_t)size, &failure);
    int rc = world_minimum(w, &worst, 1, &failure);
    *code = rc ? rc : (int)worst;
    return 1;
}

int late_set_size(struct file *f, int64_t bytes)
{
    int code = 0;
    int able = f->can_write && bytes >= 0;
    return one_of_each_node(f, able, able ? bytes : 0, store_resize, &code) && !code;
}

static int sync_it(struct io_store *store, uint64_t nothing, struct brg_error *err)
{
    (void)nothing;
    return store_sync(store, err);
}

int late_sync(struct file *f, int *code)
{
    return one_of_each_node(f, f->can_write, 0, sync_it, code);
}
