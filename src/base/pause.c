/* See pause.h. */
#include "base/pause.h"

#include <sched.h>
#include <time.h>

#include "base/clock.h"

#define LOOK_NS UINT64_C(20000) /* at once */
#define FIRST_NAP_NS UINT64_C(5000)

int pause_before_next(struct pause *pause, uint64_t yields_ns)
{
    uint64_t now = brg_clock_ns();
    if (!pause->began_ns)
        pause->began_ns = now;
    if (now - pause->began_ns < LOOK_NS)
        return 0;
    if (now - pause->began_ns < yields_ns) {
        sched_yield();
        return 0;
    }
    pause->nap_ns = pause->nap_ns ? pause->nap_ns * 2 : FIRST_NAP_NS;
    if (pause->nap_ns > PAUSE_MOST_NS)
        pause->nap_ns = PAUSE_MOST_NS;
    struct timespec nap = {.tv_nsec = (long)pause->nap_ns};
    nanosleep(&nap, NULL);
    return 1;
}
