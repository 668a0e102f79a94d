/* Time that only goes forward. */
#ifndef BRG_BASE_CLOCK_H
#define BRG_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds since some moment that is the same for every process of the machine. */
static inline uint64_t brg_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
