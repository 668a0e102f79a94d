/* See world.h. */
#include "io/world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"

static int wait_for(struct io_world *world, struct stream_request *request, int rc,
                    struct brg_error *err)
{
    for (unsigned looks = 0;; looks++) {
        int done = 0;
        if (rc == 0)
            rc = world->all->test(world->all, request, &done);
        if (rc) {
            world->broken.code = rc;
            return brg_error_set(err, rc, "MPI failed between the ranks of the file");
        }
        if (done)
            return 0;
        if (looks > 100) {
            struct timespec nap = {.tv_nsec = 50000};
            nanosleep(&nap, NULL);
        }
    }
}

int world_minimum(struct io_world *world, int64_t *values, int n, struct brg_error *err)
{
    int64_t mine[WORLD_VALUES];
    struct stream_request request = {.active = 0};
    memcpy(mine, values, (size_t)n * sizeof *mine);
    return wait_for(world, &request, world->all->minimum(world->all, mine, values, n, &request),
                    err);
}

int world_share(struct io_world *world, void *buf, size_t bytes, uint32_t root,
                struct brg_error *err)
{
    struct stream_request request = {.active = 0};
    return wait_for(world, &request, world->all->broadcast(world->all, buf, bytes, root, &request),
                    err);
}

int world_failure(struct io_world *world, struct brg_error *mine)
{
    int64_t rank = mine->code ? (int64_t)world->rank : INT64_MAX;
    struct brg_error err;
    if (world_minimum(world, &rank, 1, &err)) {
        *mine = err;
        return err.code;
    }
    if (rank == INT64_MAX)
        return 0;
    if (mine->code && mine->rank < 0)
        mine->rank = (int)world->rank;
    if (world_share(world, mine, sizeof *mine, (uint32_t)rank, &err))
        *mine = err;
    return mine->code;
}

static int fill_tables(struct io_world *w)
{
    w->node_of = calloc(w->size, sizeof *w->node_of);
    w->local_of = calloc(w->size, sizeof *w->local_of);
    w->first_of = calloc(w->size + 1, sizeof *w->first_of);
    w->order = calloc(w->size, sizeof *w->order);
    if (!w->node_of || !w->local_of || !w->first_of || !w->order)
        return -ENOMEM;
    w->n_nodes = w->size;
    w->node = w->rank;
    w->n_local = 1;
    for (uint32_t i = 0; i < w->size; i++) {
        w->node_of[i] = w->order[i] = i;
        w->first_of[i + 1] = i + 1;
    }
    return 0;
}

static void drop(void *value)
{
    struct io_world *w = value;
    free(w->node_of);
    free(w->local_of);
    free(w->first_of);
    free(w->order);
    free(w);
}

int world_open(uintptr_t comm, int share, uint64_t segment_bytes, struct io_world **out,
               struct brg_error *err)
{
    const struct mpi_interface *mpi = NULL;
    (void)share, (void)segment_bytes;
    int rc = comm ? mpi_join(&mpi, err) : 0;
    if (rc)
        return rc;
    if (comm && !mpi)
        return brg_error_set(err, -EINVAL, "MPI does not run in this process: call MPI_Init first");
    struct io_world *w = mpi ? mpi->kept(comm) : NULL;
    if (w) {
        *out = w;
        return 0;
    }
    w = calloc(1, sizeof *w);
    if (!w)
        return brg_error_set(err, -ENOMEM, "no memory for a communicator's ranks");
    w->mpi = mpi;
    rc = mpi ? mpi->duplicate(comm, &w->all) : 0;
    if (!mpi)
        w->all = net_single();
    if (!rc) {
        w->rank = w->all->rank;
        w->size = w->all->size;
        rc = fill_tables(w);
    }
    if (!rc && mpi)
        rc = mpi->keep(comm, w, drop);
    if (rc) {
        drop(w);
        return brg_error_system(err, rc, "cannot use the communicator");
    }
    *out = w;
    return 0;
}

void world_close(struct io_world *world)
{
    if (!world->mpi)
        drop(world);
}
