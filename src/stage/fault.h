/* The points at which tests make staging fail: see base/fault.h. */
#ifndef BRG_STAGE_FAULT_H
#define BRG_STAGE_FAULT_H

#include "base/fault.h"

/* X(symbol, name in BRIGADE_FAULT): what N counts, and what happens */
#define FAULT_POINTS(X)                                                                       \
    X(FAULT_WRITE, "stage.write")     /* bytes written: ENOSPC */                             \
    X(FAULT_BLOCK, "stage.block")     /* block number: one bit flips before it is verified */ \
    X(FAULT_READ, "stage.read")       /* segments read here: EIO */                           \
    X(FAULT_KILL, "stage.kill")       /* segments taken here: SIGKILL */                      \
    X(FAULT_STEP, "stage.step")       /* agreements of all nodes before: SIGKILL */           \
    X(FAULT_TERM, "stage.term")       /* segments taken here: SIGTERM */                      \
    X(FAULT_SLOW, "stage.slow")       /* microseconds to sleep at each segment */             \
    X(FAULT_PUBLISH, "stage.publish") /* the renaming: EIO */

enum fault_point {
    FAULT_NONE,
#define X(symbol, name) symbol,
    FAULT_POINTS(X)
#undef X
};

extern struct brg_fault fault_chosen;

/* Reads BRIGADE_FAULT. An unknown point is ignored: tests see that nothing failed. */
void fault_start(uint32_t rank);

static inline int fault_at(enum fault_point point, uint64_t number)
{
    return fault_chosen.point == (int)point && number >= fault_chosen.n;
}

#endif
