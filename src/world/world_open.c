/* Worlds of communicators: made, kept, and ended. See world.h. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "stream/group.h"
#include "world/fault.h"
#include "world/world_join.h"

/* MPI is ending: its communicators are not freed any more, in whatever order it ends them. */
static int ending;

/* ---- one world ---- */

static void destroy(struct io_world *w)
{
    if (w->has_lifeline)
        lifeline_close(&w->lifeline);
    if (w->broken.code) /* MPI may still have messages from it and for it */
        return;
    if (w->kept)
        w->drop(w->kept);
    area_destroy(w->area);
    if (w->mpi && !ending && w->all)
        w->mpi->release(w->all);
    group_free(w->node_group);
    group_free(w->leader_group);
    free(w->opening.marks);
    free(w->opening.numbering);
    free(w->local_of);
    free(w->first_of);
    free(w->order);
    free(w->leader_of);
    free(w);
}

static int create_alone(struct io_world *w)
{
    struct area_token token;
    w->all = net_single();
    w->size = 1;
    int rc = world_alloc(w);
    if (rc)
        return rc;
    world_fill(w);
    return area_create(1, world_room_bytes(w), &w->area, &token);
}

static int fail(struct io_world *w, int rc, struct brg_error *err)
{
    if (world_is_broken(w))
        rc = world_broke(w, err);
    else if (rc == -ECOMM)
        w->broken.code = brg_error_system(err, rc, "cannot use the communicator");
    else if (rc == -ENOMEM)
        brg_error_system(err, rc, "no memory on some rank to open files (hint segment takes less)");
    else
        brg_error_system(err, rc, w->mpi ? "cannot use the communicator" : "cannot open files");
    destroy(w);
    return rc;
}

static int reach_ranks(struct io_world *w, uintptr_t comm, int is_ours)
{
    int rc = is_ours ? w->mpi->over(comm, &w->all) : w->mpi->borrow(comm, &w->all);
    if (rc)
        return rc;
    w->borrowed = is_ours ? 0 : comm;
    w->rank = w->all->rank;
    w->size = w->all->size;
    io_fault_start(w->rank);
    rc = world_introduce(w, world_alloc(w));
    return rc ? rc : world_join(w);
}

static int create(uintptr_t comm, int is_ours, const struct mpi_interface *mpi, int share,
                  uint64_t segment_bytes, struct io_world **out, struct brg_error *err)
{
    struct io_world *w = calloc(1, sizeof *w);
    if (!w)
        return brg_error_system(err, -ENOMEM, "no memory for a file");
    w->mpi = mpi;
    w->share = share;
    w->segment_bytes = segment_bytes;
    int rc = mpi ? reach_ranks(w, comm, is_ours) : create_alone(w);
    if (rc)
        return fail(w, rc, err);
    if (mpi) {
        w->area->yields = w->n_nodes == 1;
        w->area->tick = world_tick;
        w->area->tick_context = w;
    }
    *out = w;
    return 0;
}

/* ---- those of a communicator ---- */

static void drop_all(void *value)
{
    for (struct io_world *w = value, *next; w; w = next) {
        next = w->next;
        w->forsaken = 1;
        if (w->users == 0)
            destroy(w);
    }
}

/* MPI_COMM_SELF is never freed but when MPI ends, and is the first then. What it keeps is the
 * worlds of files opened on it, behind a first one that is none. */
static void drop_self(void *value)
{
    struct io_world *head = value;
    ending = 1;
    drop_all(head->next);
    free(head);
}

static int watch_end(const struct mpi_interface *mpi)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct io_world *head = NULL;
    int rc = 0;
    pthread_mutex_lock(&lock);
    if (!mpi->kept(mpi->self)) {
        head = calloc(1, sizeof *head);
        rc = head ? mpi->keep(mpi->self, head, drop_self) : -ENOMEM;
    }
    pthread_mutex_unlock(&lock);
    if (rc)
        free(head);
    return rc;
}

static struct io_world *first_of(const struct mpi_interface *mpi, uintptr_t comm)
{
    struct io_world *w = mpi->kept(comm);
    return w && comm == mpi->self ? w->next : w;
}

/* The world of a communicator that has none yet is kept by it; others follow that one. */
static int keep(const struct mpi_interface *mpi, uintptr_t comm, struct io_world *w)
{
    struct io_world *head = mpi->kept(comm);
    if (!head)
        return mpi->keep(comm, w, drop_all);
    w->next = head->next;
    head->next = w;
    return 0;
}

/* In a meeting: what rank 0 asks for, and whether it is there already. */
enum {
    THERE,
    SHARE,
    SEGMENT,
    N_ASKED
};

static struct io_world *find(struct io_world *w, int64_t share, int64_t segment_bytes)
{
    while (w && (w->share != (int)share || w->segment_bytes != (uint64_t)segment_bytes))
        w = w->next;
    return w;
}

static void say(const struct world_words *words, struct io_world *w)
{
    if (words)
        words->say(words->context, w);
}

static int hear(struct io_world *w, const struct world_words *words, int64_t *asked,
                struct brg_error *err)
{
    int64_t v[WORLD_VALUES];
    int n = words ? words->n : 0;
    memcpy(v, asked, N_ASKED * sizeof *v);
    if (n)
        memcpy(v + N_ASKED, words->values, (size_t)n * sizeof *v);
    int rc = words && words->n_bytes
                 ? world_share_and_least(w, words->bytes, words->n_bytes, 0, v, N_ASKED + n, err)
                 : world_minimum(w, v, N_ASKED + n, err);
    if (rc)
        return rc;
    memcpy(asked, v, N_ASKED * sizeof *v);
    if (n && asked[THERE])
        memcpy(words->values, v + N_ASKED, (size_t)n * sizeof *v);
    return 0;
}

/* Rank 0 finds what it asks for among the worlds of this communicator, in which case all have heard
 * the words when this returns; or nobody, and *found is NULL. */
static int open_known(struct io_world *first, int64_t *asked, const struct world_words *words,
                      struct io_world **found, struct brg_error *err)
{
    *found = NULL;
    if (first->rank == 0) {
        *found = find(first, asked[SHARE], asked[SEGMENT]);
        asked[THERE] = *found != NULL;
    } else {
        asked[THERE] = asked[SHARE] = asked[SEGMENT] = INT64_MAX;
    }
    if (first->rank != 0 || *found)
        say(words, *found ? *found : first);
    int rc = hear(first, words, asked, err);
    if (!rc && asked[THERE])
        *found = find(first, asked[SHARE], asked[SEGMENT]);
    return rc;
}

static int open_new(const struct mpi_interface *mpi, uintptr_t comm, int is_ours,
                    const int64_t *asked, const struct world_words *words, int said,
                    struct io_world **out, struct brg_error *err)
{
    struct io_world *w;
    int64_t heard[N_ASKED] = {1, 0, 0};
    int rc = watch_end(mpi);
    if (rc)
        return brg_error_system(err, rc, "cannot use the communicator");
    rc = create(comm, is_ours, mpi, (int)asked[SHARE], (uint64_t)asked[SEGMENT], &w, err);
    if (rc)
        return rc;
    if ((rc = keep(mpi, comm, w)))
        return fail(w, rc, err);
    if (!said || w->rank == 0)
        say(words, w);
    *out = w;
    return words ? hear(w, words, heard, err) : 0;
}

static int open_on(const struct mpi_interface *mpi, uintptr_t comm, int is_ours, int share,
                   uint64_t segment_bytes, const struct world_words *words, struct io_world **out,
                   struct brg_error *err)
{
    struct io_world *first = first_of(mpi, comm), *found = NULL;
    int64_t asked[N_ASKED] = {0, share != 0, (int64_t)segment_bytes};
    int rc = first ? open_known(first, asked, words, &found, err) : 0;
    if (rc)
        return rc;
    *out = found;
    if (found)
        return 0;
    return open_new(mpi, comm, is_ours && !first, asked, words, first != NULL, out, err);
}

static int open_alone(int share, uint64_t segment_bytes, const struct world_words *words,
                      struct io_world **out, struct brg_error *err)
{
    int rc = create(0, 0, NULL, share, segment_bytes, out, err);
    if (!rc)
        say(words, *out);
    return rc;
}

int world_open(uintptr_t comm, int is_ours, int share, uint64_t segment_bytes,
               const struct world_words *words, struct io_world **out, struct brg_error *err)
{
    const struct mpi_interface *mpi = NULL;
    struct io_world *w;
    int rc = comm ? mpi_join(&mpi, err) : 0;
    if (rc)
        return rc;
    if (mpi && !mpi->of_one_group(comm))
        return brg_error_set(err, -EINVAL,
                             "a file is opened by the ranks of one group: MPI_COMM_NULL has none, "
                             "and an intercommunicator two (MPI_Intercomm_merge makes it one)");
    rc = mpi ? open_on(mpi, comm, is_ours, share, segment_bytes, words, &w, err)
             : open_alone(0, segment_bytes, words, &w, err);
    if (rc)
        return rc;
    w->users++;
    *out = w;
    return 0;
}

void world_close(struct io_world *world)
{
    if (--world->users == 0 && (!world->mpi || world->forsaken))
        destroy(world);
}
