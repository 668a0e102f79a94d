/* See plan.h. */
#include "io/plan.h"

uint32_t plan_domain(const struct io_plan *plan, uint64_t window)
{
    uint32_t low = 0, high = plan->n_writers;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (plan->first[middle] <= window)
            low = middle;
        else
            high = middle;
    }
    return low;
}
