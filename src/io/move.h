/* Bytes between the memory of all ranks and the store, in one collective call. */
#ifndef BRG_IO_MOVE_H
#define BRG_IO_MOVE_H

#include "io/drain.h"
#include "io/plan.h"
#include "io/request.h"
#include "io/store.h"
#include "io/world.h"

struct io_call {
    struct io_world *world;
    const struct io_plan *plan;
    struct io_store *store; /* read from here; writes go through the drain */
    struct drain *drain;
    const struct io_request *request; /* this rank's; may be empty */
};

/* Collective. Failures of this rank alone come back here and are agreed on by the caller;
 * -EOWNERDEAD is everybody's. Failed bytes have no effect on what other ranks move. */
int move_write(const struct io_call *call, struct brg_error *err);
int move_read(const struct io_call *call, struct brg_error *err);

#endif
