/* What the parts of a call's moving share. One `struct mover` a rank and call. */
#ifndef BRG_IO_MOVE_PARTS_H
#define BRG_IO_MOVE_PARTS_H

#include <pthread.h>

#include "move/claim.h"
#include "move/move.h"

struct mover {
    const struct io_call *call;
    int collect; /* or scatter */
    int again;   /* windows that are done once more */
    struct claims claims;
    struct brg_error failure; /* of this rank's calling thread */
    struct brg_error behind;  /* of its serving thread */
    uint64_t moved;           /* of this rank's bytes; those done once more count once */
    uint32_t served;          /* tasks of this pass before it are served, if they are its own */
    pthread_mutex_t *storing; /* the store takes one thread at a time; NULL: there is but one */
};

/* Keeps a failure, and ends what this node waits for in this call; the meeting at the end tells the
 * others. -ECANCELED and -EOWNERDEAD are known already, and are not kept. */
void mover_fail(struct mover *m, struct brg_error *mine, const struct brg_error *failure);

/* The calling thread has moved so many of its rank's bytes. */
void mover_moved(struct mover *m, uint64_t bytes);

/* To and from the file. -ENODATA where it ends. */
int mover_write(struct mover *m, const void *buf, size_t bytes, uint64_t offset,
                struct brg_error *err);
int mover_read(struct mover *m, void *buf, size_t bytes, uint64_t offset, struct brg_error *err);
/* Of a file that is being written; zeros where it ends. */
int mover_hold(struct mover *m, size_t bytes, uint64_t offset);
void mover_release(struct mover *m, size_t bytes, uint64_t offset);
int mover_read_raw(struct mover *m, void *buf, size_t bytes, uint64_t offset,
                   struct brg_error *err);

/* This rank's part in each task that it touches: it puts its bytes (collect) or takes them. One
 * that `serves`, in a collection, writes its own tasks on the way, as far as slots are wanted. */
void slots_attend(struct mover *m, int serves);
/* The same for one task whose slot is at the right stage; tells who waits for it. */
void slots_pass(struct mover *m, uint32_t task);
/* Reading: marks the bytes of a task that this rank wants, where another node has them and is asked
 * for them. Its slot is open. */
void slots_want(struct mover *m, uint32_t task);
/* Whether this rank has to do with a task's window. */
int slots_touch(const struct mover *m, uint32_t task);
/* All ranks of this node that touch the task, and whoever else, are done with it. */
void slots_came(struct mover *m, uint32_t task);

void slots_reach(struct mover *m, uint32_t task, enum slot_stage stage);

/* In place of slots_attend, for the leader of a node where there are others. */
void nodes_attend(struct mover *m);

/* Writes what the bucket holds; of use for nothing else afterwards. 0 or -errno with *err. */
int sieve_write(struct mover *m, struct bucket *bucket, struct brg_error *err);

/* What the writer (reader) of a domain does: every task of it that is left, in order. */
void slots_serve(struct mover *m);
/* Whether this rank is one. */
int slots_serves(const struct mover *m);

/* This rank's own windows, from and to its own memory. */
void own_move(struct mover *m);

#endif
