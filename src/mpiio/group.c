/* See group.h. The list is the same on all ranks of a group, as far as its own entries go: taking
 * and giving are collective. */
#include "mpiio/group.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define MOST_STAYING 8 /* each has memory that its ranks share */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct group *groups;
static atomic_int n_staying; /* that were told to */

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
                        .id = GROUP_NO_WORD,
                        .stays = stays,
                        .users = 1,
                        .next = groups};
    groups = g;
    pthread_mutex_unlock(&lock);
    return g;
}

struct group *group_offer(const struct mpi_interface *mpi, mpi_handle comm)
{
    struct group *found = NULL;
    pthread_mutex_lock(&lock);
    for (struct group *g = groups; g; g = g->next)
        if (!g->is_shared && !g->users && g->id >= 0 && (!found || g->id < found->id) &&
            mpi->files->same_ranks(g->comm, comm))
            found = g;
    if (found)
        found->users = 1;
    pthread_mutex_unlock(&lock);
    return found;
}

/* The offer is of use only if all ranks offer the same: another thread of one of them may be about
 * to have it. */
struct group *group_take_told(const struct mpi_interface *mpi, mpi_handle comm, int threads,
                              struct group *offer, int is_same)
{
    if (threads && offer && is_same)
        return offer;
    if (offer)
        group_give(mpi, offer);
    struct group *g = threads ? NULL : group_find(mpi, comm);
    if (!g)
        return make(mpi, comm, !threads);
    g->users++;
    return g;
}

struct group *group_take(const struct mpi_interface *mpi, mpi_handle comm)
{
    int threads = !group_find(mpi, comm) && mpi->files->threads(comm);
    if (!threads || !mpi->files->late)
        return group_take_told(mpi, comm, threads, NULL, 0);
    struct group *offer = group_offer(mpi, comm);
    int64_t word = group_word(offer), v[2] = {word, ~word};
    int rc = mpi->files->late->least(comm, v, 2);
    return group_take_told(mpi, comm, 1, offer, !rc && v[0] == ~v[1] && v[0] != GROUP_NO_WORD);
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
    pthread_mutex_lock(&lock);
    int ends = --group->users == 0 && !group->stays;
    pthread_mutex_unlock(&lock);
    if (ends)
        drop(mpi, group);
}

int group_may_stay(const struct group *group)
{
    return group->stays || n_staying < MOST_STAYING;
}

void group_stay(struct group *group)
{
    if (!group->stays)
        n_staying++;
    group->stays = 1;
}

void group_name(struct group *group, int64_t number)
{
    pthread_mutex_lock(&lock);
    if (!group->is_shared && group->stays && group->id < 0)
        group->id = number;
    pthread_mutex_unlock(&lock);
}

void group_end(const struct mpi_interface *mpi)
{
    for (struct group *g = groups, *next; g; g = next) {
        next = g->next;
        if (!g->users)
            drop(mpi, g);
    }
}
