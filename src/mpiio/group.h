/* The ranks that a file was opened on, in a communicator of our own: the program may free its own
 * while the file is open. Files of the same ranks share one, and with it a world, which costs
 * messages and memory to make. Where several threads may call MPI at a time each open file has its
 * own, as their calls may then come in another order on another rank; when it is closed, the next
 * one that these ranks open has it. */
#ifndef BRG_MPIIO_GROUP_H
#define BRG_MPIIO_GROUP_H

#include "mpi/files.h"
#include "world/world.h"

struct group {
    mpi_handle comm;
    unsigned number; /* no other of this rank's ever has it */
    int is_shared;   /* by files of the same ranks */
    int is_used;     /* a world has been asked for */
    int stays;       /* also when no file uses it: until group_end */
    int64_t id;      /* of one that is not shared: its first rank's number, or GROUP_NO_WORD */
    unsigned users;
    struct group *next;
};

/* What files of the ranks of `comm` share already, the same on all of them; or NULL. Local. */
struct group *group_find(const struct mpi_interface *mpi, mpi_handle comm);

/* The world that they have made and that is still there; or NULL. Local. */
struct io_world *group_world(const struct mpi_interface *mpi, const struct group *group);

/* Collective over `comm`; NULL on every rank: MPI cannot copy it. */
struct group *group_take(const struct mpi_interface *mpi, mpi_handle comm);

/* The same where the ranks meet anyway. Before, local: one that a closed file had and nobody uses,
 * this thread's until it is taken or given, or NULL; and a word for it. Then, collective, with what
 * they have told each other, the same on all ranks: whether several threads may call MPI at a time
 * on any rank, and whether all have said the same word, but GROUP_NO_WORD. */
#define GROUP_NO_WORD INT64_C(-1)
struct group *group_offer(const struct mpi_interface *mpi, mpi_handle comm);
static inline int64_t group_word(const struct group *offer)
{
    return offer ? offer->id : GROUP_NO_WORD;
}
struct group *group_take_told(const struct mpi_interface *mpi, mpi_handle comm, int threads,
                              struct group *offer, int is_same);

/* Collective. */
void group_give(const struct mpi_interface *mpi, struct group *group);

/* Those of MPI_COMM_WORLD's and MPI_COMM_SELF's ranks stay. Others, if all of their ranks may have
 * them stay, and then are told: memory and connections are made once for a program that has a file
 * of each of a few parts of its ranks. Local. */
int group_may_stay(const struct group *group);
void group_stay(struct group *group);
/* What its first rank has as `number`, told to all that have made a world. Local. */
void group_name(struct group *group, int64_t number);

/* Collective over MPI_COMM_WORLD: MPI is about to end. */
void group_end(const struct mpi_interface *mpi);

#endif
