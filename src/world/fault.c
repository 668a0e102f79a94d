/* See fault.h. */
#include "world/fault.h"

#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

struct brg_fault io_fault_chosen;

static _Atomic uint64_t counted; /* of the one point that is chosen */

void io_fault_start(uint32_t rank)
{
    static const char *const names[] = {
#define X(symbol, name) name,
        IO_FAULT_POINTS(X)
#undef X
    };
    brg_fault_read(&io_fault_chosen, names, sizeof names / sizeof *names, rank);
    counted = 0;
}

int io_fault_counted(enum io_fault_point point)
{
    return io_fault_chosen.point == (int)point && io_fault_add(1) >= io_fault_chosen.n;
}

uint64_t io_fault_add(uint64_t n)
{
    return atomic_fetch_add(&counted, n);
}

void io_fault_kill(enum io_fault_point point)
{
    if (io_fault_counted(point))
        kill(getpid(), SIGKILL);
}
