/* The points at which tests make shared files fail: see base/fault.h. */
#ifndef BRG_IO_FAULT_H
#define BRG_IO_FAULT_H

#include "base/fault.h"

/* X(symbol, name in BRIGADE_FAULT): what N counts on that rank, and what happens */
#define IO_FAULT_POINTS(X)                                                                   \
    X(IO_FAULT_WRITE, "io.write")   /* bytes that the store wrote before: ENOSPC */          \
    X(IO_FAULT_QUOTA, "io.quota")   /* bytes that the store wrote before: EDQUOT */          \
    X(IO_FAULT_EIO, "io.eio")       /* bytes that the store wrote before: EIO */             \
    X(IO_FAULT_SHORT, "io.short")   /* bytes that one system call writes at most */          \
    X(IO_FAULT_EINTR, "io.eintr")   /* every other system call that writes: EINTR */         \
    X(IO_FAULT_READ, "io.read")     /* bytes read before: EIO */                             \
    X(IO_FAULT_OPEN, "io.open")     /* opens of what is written to, before: EACCES */        \
    X(IO_FAULT_FSYNC, "io.fsync")   /* syncs before: EIO */                                  \
    X(IO_FAULT_CLOSE, "io.close")   /* closes of what was shown before: EDQUOT */            \
    X(IO_FAULT_RENAME, "io.rename") /* renames before: EIO */                                \
    X(IO_FAULT_KILL, "io.kill")     /* steps of the store before (io_fault_step): SIGKILL */ \
    X(IO_FAULT_JOIN,                                                                         \
      "io.join") /* steps of world_open before (of those that see a death): SIGKILL */       \
    X(IO_FAULT_MEET, "io.meet") /* meetings of all ranks begun before: SIGKILL */            \
    X(IO_FAULT_SLOT, "io.slot") /* windows put into, taken from or served before: SIGKILL */ \
    X(IO_FAULT_PASS, "io.pass") /* messages of leaders that came or went before: SIGKILL */

enum io_fault_point {
    IO_FAULT_NONE,
#define X(symbol, name) symbol,
    IO_FAULT_POINTS(X)
#undef X
};

extern struct brg_fault io_fault_chosen;

/* Reads BRIGADE_FAULT; each open of a file does, and counts begin anew. */
void io_fault_start(uint32_t rank);

static inline int io_fault_at(enum io_fault_point point, uint64_t number)
{
    return io_fault_chosen.point == (int)point && number >= io_fault_chosen.n;
}

/* As io_fault_at; counts the calls itself: the number is that of earlier calls with this point. */
int io_fault_counted(enum io_fault_point point);

/* Adds to the count of the chosen point; returns what it was before. */
uint64_t io_fault_add(uint64_t n);

/* The process is killed, if `point` is chosen and has been here as often as that. */
void io_fault_kill(enum io_fault_point point);

/* A step of the store begins. */
static inline void io_fault_step(void)
{
    io_fault_kill(IO_FAULT_KILL);
}

#endif
