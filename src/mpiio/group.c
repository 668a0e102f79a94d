/* See group.h. The list is the same on all ranks of a group, as far as its own entries go: taking
 * and giving are collective. */
#include "mpiio/group.h"

#include <pthread.h>
#include <stdlib.h>

#define MOST_STAYING 8 /* each has memory that its ranks share */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct group *groups;
static int n_staying; /* that were told to */

struct group *group_find(const struct mpi_interface *mpi, mpi_handle comm)
{
    struct group *found = NULL;
    pthread_mutex_lock(&lock);
    for (struct group *g = groups; g && !found; g = g->next)
        if (g->is_shared && mpi->files->same_ranks(g->comm, comm))
            found = g;
    pthread_mutex_unlock(&lock);
    return found;
}

struct io_world *group_world(const struct mpi_interface *mpi, const struct group *group)
{
    return group && group->is_shared ? mpi->kept(group->comm) : NULL;
}

static struct group *make(const struct mpi_interface *mpi, mpi_handle comm, int is_shared)
{
    static unsigned numbers;
    mpi_handle copy = mpi->files->copy(comm);
    struct group *g = copy ? calloc(1, sizeof *g) : NULL;
    if (!g) /* no memory for 40 bytes: the other ranks will find this one's area missing */
        return NULL;
    int stays = is_shared && (mpi->files->same_ranks(copy, mpi->world) ||
                              mpi->files->same_ranks(copy, mpi->self));
    pthread_mutex_lock(&lock);
    *g = (struct group){.comm = copy,
                        .number = numbers++,
                        .is_shared = is_shared,
                        .stays = stays,
                        .users = 1,
                        .next = groups};
    groups = g;
    pthread_mutex_unlock(&lock);
    return g;
}

struct group *group_take(const struct mpi_interface *mpi, mpi_handle comm,
                         enum group_threads threads)
{
    struct group *g = group_find(mpi, comm);
    if (g) {
        g->users++;
        return g;
    }
    return make(mpi, comm, threads == GROUP_ONE_THREAD || !mpi->files->threads(comm));
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
    if (--group->users == 0 && !group->stays)
        drop(mpi, group);
}

int group_may_stay(const struct group *group)
{
    return group->stays || (group->is_shared && n_staying < MOST_STAYING);
}

void group_stay(struct group *group)
{
    if (!group->stays)
        n_staying++;
    group->stays = 1;
}

void group_end(const struct mpi_interface *mpi)
{
    for (struct group *g = groups, *next; g; g = next) {
        next = g->next;
        if (!g->users)
            drop(mpi, g);
    }
}
