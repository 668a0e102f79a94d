/* See fault.h. */
#include "stage/fault.h"

struct brg_fault fault_chosen;

void fault_start(uint32_t rank)
{
    static const char *const names[] = {
#define X(symbol, name) name,
        FAULT_POINTS(X)
#undef X
    };
    brg_fault_read(&fault_chosen, names, sizeof names / sizeof *names, rank);
}
