/* The ranks of a communicator, the nodes they are on, and what all of them agree on.
 *
 * Made once for a communicator and kept by it; files opened on it share it. All calls are
 * collective over the world and made by the thread that may call MPI. Waiting sleeps. A call fails
 * with -EOWNERDEAD when a rank has died: then the world is broken, and every later call fails at
 * once with the same failure. */
#ifndef BRG_IO_WORLD_H
#define BRG_IO_WORLD_H

#include "brigade/io.h"
#include "mpi/mpi.h"

struct io_area; /* memory that the ranks of a node share: area.h */

struct io_world {
    uint32_t rank, size;
    uint32_t node, n_nodes;     /* nodes are numbered along the topology; rank 0's may be any */
    uint32_t local, n_local;    /* my place among the ranks of my node, by rank; 0 is the leader */
    uint32_t *node_of;          /* [size] */
    uint32_t *local_of;         /* [size] place of a rank on its node */
    uint32_t *first_of;         /* [n_nodes + 1] where a node begins in `order` */
    uint32_t *order;            /* [size] ranks by (node, rank) */
    struct stream_net *all;     /* every rank */
    struct stream_net *leaders; /* rank = node; NULL unless local == 0 */
    struct io_area *area;
    struct brg_error broken;         /* code != 0: what ended this world */
    const struct mpi_interface *mpi; /* NULL: one process */
};

/* The world of a communicator (comm 0: of this process alone). share 0: every rank is a node of its
 * own. segment_bytes: half of the memory that a node's area may take. Two of the same communicator
 * and the same arguments are the same world. */
int world_open(uintptr_t comm, int share, uint64_t segment_bytes, struct io_world **world,
               struct brg_error *err);

/* Gives back what world_open gave; the communicator keeps it. */
void world_close(struct io_world *world);

/* values[i] becomes the least values[i] of all ranks; n <= WORLD_VALUES. */
#define WORLD_VALUES 32
int world_minimum(struct io_world *world, int64_t *values, int n, struct brg_error *err);

/* Everybody gets the bytes of rank `root`. */
int world_share(struct io_world *world, void *buf, size_t bytes, uint32_t root,
                struct brg_error *err);

/* Agrees on a failure: mine.code (0: none here) of the lowest rank that has one becomes everybody's
 * *mine, and is returned; rank, offset and path come with it. */
int world_failure(struct io_world *world, struct brg_error *mine);

#endif
