/* See group.h. The list is the same on all ranks of a group, as far as its own entries go: taking
 * and giving are collective. */
#include "mpiio/group.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct group *groups;

static struct group *find(const struct mpi_interface *mpi, mpi_handle comm)
{
    struct group *found = NULL;
    if (mpi->files->threads(comm))
        return NULL;
    for (struct group *g = groups; g && !found; g = g->next)
        if (mpi->files->same_ranks(g->comm, comm))
            found = g;
    return found;
}

struct io_world *group_world(const struct mpi_interface *mpi, mpi_handle comm)
{
    struct group *g = find(mpi, comm);
    return g ? mpi->kept(g->comm) : NULL;
}

struct group *group_take(const struct mpi_interface *mpi, mpi_handle comm)
{
    struct group *g = find(mpi, comm);
    if (g) {
        g->users++;
        return g;
    }
    mpi_handle copy = mpi->files->copy(comm);
    g = copy ? calloc(1, sizeof *g) : NULL;
    if (!g) /* no memory for 24 bytes: the other ranks will find this one's area missing */
        return NULL;
    pthread_mutex_lock(&lock);
    *g = (struct group){.comm = copy, .users = 1, .next = groups};
    groups = g;
    pthread_mutex_unlock(&lock);
    return g;
}

static void drop(const struct mpi_interface *mpi, struct group *group)
{
    pthread_mutex_lock(&lock);
    struct group **at = &groups;
    while (*at != group)
        at = &(*at)->next;
    *at = group->next;
    pthread_mutex_unlock(&lock);
    mpi->files->free(group->comm);
    free(group);
}

void group_give(const struct mpi_interface *mpi, struct group *group)
{
    if (--group->users)
        return;
    int stays = !mpi->files->threads(0) && (mpi->files->same_ranks(group->comm, mpi->world) ||
                                            mpi->files->same_ranks(group->comm, mpi->self));
    if (!stays)
        drop(mpi, group);
}

void group_end(const struct mpi_interface *mpi)
{
    for (struct group *g = groups, *next; g; g = next) {
        next = g->next;
        if (!g->users)
            drop(mpi, g);
    }
}
