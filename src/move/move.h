/* Bytes between the memory of all ranks and the store, in one collective call. */
#ifndef BRG_IO_MOVE_H
#define BRG_IO_MOVE_H

#include "drain/drain.h"
#include "move/extent.h"
#include "store/store.h"
#include "world/world.h"

struct io_call {
    struct io_world *world;
    const struct io_plan *plan;
    struct io_store *store; /* read from here; writes go through the drain */
    struct drain *drain;
    uint64_t size;                    /* of the file when all has been written */
    const struct io_request *request; /* this rank's; may be empty */
    int any; /* of bytes that several ranks write any rank's may stay; 0: the highest one's does */
    int *overlap; /* NULL, or the same on every rank: the last call that wrote had such bytes */
    brg_progress *progress; /* or NULL */
    void *progress_context;
};

/* Where a file lies, as a plan wants it for a call that writes, or reads. */
static inline struct plan_place move_place(const struct store_token *token, int writes)
{
    return (struct plan_place){token->stripe_bytes, writes ? token->lock_bytes : 0, writes,
                               token->one_stream};
}

/* The ranks of a world as a plan wants them; what is known of the past is the caller's. */
struct plan_ranks move_ranks(const struct io_world *world);

/* Collective, and agreed on: 0, or the same failure on every rank. Failed bytes have no effect on
 * what other ranks move before the failure is agreed on. */
int move_write(const struct io_call *call, struct brg_error *err);
int move_read(const struct io_call *call, struct brg_error *err);

#endif
