/* The ranks of a communicator, the nodes they are on, and what all of them agree on.
 *
 * Made once for a communicator and kept by it; files opened on it share it. All calls are
 * collective over the world and made by the thread that may call MPI. Waiting sleeps. A call fails
 * with -EOWNERDEAD when a rank has died: then the world is broken, and every later call fails at
 * once with the same failure. */
#ifndef BRG_IO_WORLD_H
#define BRG_IO_WORLD_H

#include "brigade/io.h"
#include "world/area.h"
#include "world/experience.h"
#include "world/lifeline.h"
#include "world/nodes.h"
#include "mpi/mpi.h"

#define WORLD_VALUES AREA_VALUES /* in a meeting */
#define WORLD_MANY 14400         /* of a net */

/* What MPI has in its hands while a world is made. */
struct world_opening {
    struct node_mark mark, *marks; /* this rank's; rank 0: [size] everybody's, until numbered */
    int is_one_node;               /* known without the marks */
    struct numbering *numbering;
    struct area_token token;
    struct lifeline_card right;
    int have[2], theirs[2]; /* the connection to the left, to the right */
};

/* One that broke stays in memory for ever, with its area: whoever leaves because of a death leaves
 * requests with MPI, and all that they send from and receive into lies here. */
struct io_world {
    uint32_t rank, size;
    uint32_t node, n_nodes;     /* nodes are numbered along the topology; rank 0's may be any */
    uint32_t local, n_local;    /* my place among the ranks of my node, by rank; 0 is the leader */
    uint32_t *node_of;          /* [size], of opening.numbering */
    uint32_t *local_of;         /* [size] place of a rank on its node */
    uint32_t *first_of;         /* [n_nodes + 1] where a node begins in `order` */
    uint32_t *order;            /* [size] ranks by (node, rank) */
    uint32_t *leader_of;        /* [n_nodes] the first rank of a node */
    struct stream_net *all;     /* every rank; on one node of no use once the world is made */
    struct stream_net *leaders; /* rank = node; NULL unless local == 0 and there are others */
    struct lifeline lifeline;   /* to the leaders before and after, if has_lifeline */
    int has_lifeline;
    struct io_area *area;
    struct brg_error broken;         /* code != 0: what ended this world */
    const struct mpi_interface *mpi; /* NULL: one process */

    struct experiences past; /* what files took so far */
    unsigned pages;          /* rank 0: those of the area that somebody has, a bit for each */

    /* the world's own */
    int share;
    uint64_t segment_bytes;
    uintptr_t borrowed;     /* the program's communicator, which `all` is over; 0: our own */
    uint32_t met;           /* meetings so far */
    uint32_t shared_chunks; /* by world_share so far */
    uint32_t carried;       /* boxes, so often: carry.h */
    uint64_t looks_ns, first_looks_ns; /* the least that looks of a tick took */
    unsigned ticks;                    /* while that is not known yet */
    uint64_t looked_ns;                /* when the leader last looked whether others live */
    struct world_opening opening;
    struct stream_net *node_group, *leader_group; /* of messages on `all`, where there are nodes */
    int64_t mine[WORLD_MANY], least[WORLD_MANY];  /* of world_least */
    uint32_t word;                                /* of a death, to other leaders */
    int told;              /* this rank has told the other leaders that one died */
    struct io_world *next; /* of the same communicator, with other arguments */
    unsigned users;        /* files that have it open */
    int forsaken;          /* its communicator is gone: it ends with its last file */
    void *kept;            /* by those who use it, from one file to the next: NULL, or */
    void (*drop)(void *);  /* what ends it, without the other ranks, before the world ends */
};

/* What ranks tell each other as they open a world. Each calls say(context, world) before they meet,
 * of which it may use rank and size, and rank 0 all of it; then the bytes of rank 0, and of each of
 * n <= WORLD_WORDS values the least of all ranks, are everybody's. */
#define WORLD_WORDS (WORLD_VALUES - 3)
struct world_words {
    void (*say)(void *context, struct io_world *world);
    void *context;
    void *bytes;
    size_t n_bytes; /* of one meeting, if they are few; 0: none */
    int64_t *values;
    int n;
};

/* The world of a communicator (comm 0: of this process alone). share 0: every rank is a node of its
 * own. segment_bytes: half of the memory that a node's area may take. Those of rank 0 count. Two of
 * the same communicator and arguments are the same world. is_ours, alike on all ranks: nobody else
 * sends anything on the communicator, nor has a world of it failed to be made, so that its first
 * world takes no copy of it. words: NULL, or as above, in the meeting that opening takes anyway. */
int world_open(uintptr_t comm, int is_ours, int share, uint64_t segment_bytes,
               const struct world_words *words, struct io_world **world, struct brg_error *err);

/* Gives back what world_open gave. The communicator keeps it; one whose communicator was freed
 * meanwhile ends with its last user. */
void world_close(struct io_world *world);

/* values[i] becomes the least values[i] of all ranks; n <= WORLD_VALUES. */
int world_minimum(struct io_world *world, int64_t *values, int n, struct brg_error *err);

/* world_minimum (of no values nodes do not wait for each other, but in `alone`), and before anyone
 * returns, one rank of each node (the leader, where there are
 * several nodes) calls alone(context, least), while no other of its node is in a call; its context
 * must do for all. It may change `least`, alike on all nodes, and use the leaders' net with
 * world_finish. What it returns breaks the world if it is not 0. */
int world_meet(struct io_world *world, int64_t *values, int n,
               int (*alone)(void *context, int64_t *least), void *context, struct brg_error *err);

/* In `alone`, where all ranks are on one node: values[i] of a rank, and a word for that rank in its
 * place; world_told gives it after the meeting, until the next. */
int64_t world_heard(const struct io_world *world, uint32_t rank, int i);
void world_tell(struct io_world *world, uint32_t rank, int i, int64_t word);
int64_t world_told(const struct io_world *world, int i);

/* Everybody gets the bytes of rank `root`. */
int world_share(struct io_world *world, void *buf, size_t bytes, uint32_t root,
                struct brg_error *err);
/* The same, and world_minimum of n values, in one meeting if the bytes are few. bytes > 0. A rank
 * that has no memory for them gives NULL. */
int world_share_and_least(struct io_world *world, void *buf, size_t bytes, uint32_t root,
                          int64_t *values, int n, struct brg_error *err);

/* Rank 0, not collective: a page of AREA_PAGE_BYTES, zeros, that all ranks see, until it is given
 * back, when nobody looks at it any more: its number, or -1 where the ranks are on several nodes or
 * there is none left. With `apart`, a page of each node where there are several, of which the
 * leaders clear their own before they next meet anybody. Any rank: where it lies; NULL of -1. */
int world_take_page(struct io_world *world, int apart);
void world_clear_page(struct io_world *world, int page);
void world_give_page(struct io_world *world, int page);
char *world_page(const struct io_world *world, int page);

/* An area of room_bytes for each node, besides the world's own; nobody waits in it. Each rank ends
 * it by area_destroy, unless the world broke: then MPI may still have messages for it. 0, or -errno
 * that is the same on all ranks. */
int world_area(struct io_world *world, size_t room_bytes, struct io_area **area);

/* Agrees on a failure: mine.code (0: none here) of the lowest rank that has one becomes everybody's
 * *mine, and is returned; rank, offset and path come with it. */
int world_failure(struct io_world *world, struct brg_error *mine);

/* The same in two steps: a value of which the least of all ranks is agreed on (with others, in one
 * meeting), and what follows from it. */
int64_t world_failure_key(const struct io_world *world, const struct brg_error *mine);
int world_failure_of(struct io_world *world, int64_t least, struct brg_error *mine);

/* Not collective: what leaders do while they wait for each other. */

/* Waits until a request of `net` that returned rc is done. 0 or -errno. */
int world_finish(struct io_world *world, struct stream_net *net, struct stream_request *request,
                 int rc);
/* values[i] becomes the least values[i] of all ranks of `net`, n <= WORLD_MANY; collective over
 * them. 0 or -errno. */
int world_least(struct io_world *world, struct stream_net *net, int64_t *values, int n);
/* Sleeps until the area's bell is no longer at `seen`, at most ns; looks whether a rank died, here
 * or elsewhere. 0, -EOWNERDEAD, or -errno of the area. */
int world_rest(struct io_world *world, uint32_t seen, uint64_t ns);

/* Looks at once whether a neighbour says that a rank died, without MPI: before each round of its
 * calls, as Open MPI may not come back from one that sends to the dead. The same. */
int world_look(struct io_world *world);

/* Not collective: for the area, whose ranks wait outside MPI: lets MPI move on what the program has
 * left under way, as a rank that another one waits for in MPI may be one that waits here. 1: it has
 * moved something, as far as its time says, and may have more. */
int world_tick(void *world);

/* Not collective: fills *err with what broke the area of this node, and keeps it. Returns its
 * code. */
int world_broke(struct io_world *world, struct brg_error *err);

#endif
