/* Time that only goes forward. */
#ifndef BRG_BASE_CLOCK_H
#define BRG_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t brg_clock_read_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Nanoseconds since some moment that is the same for every process of the machine. */
static inline uint64_t brg_clock_ns(void)
{
    return brg_clock_read_ns(CLOCK_MONOTONIC);
}

/* The same, up to a tick of the kernel's (milliseconds) ago, for a part of the cost. */
static inline uint64_t brg_clock_coarse_ns(void)
{
    return brg_clock_read_ns(CLOCK_MONOTONIC_COARSE);
}

#endif
