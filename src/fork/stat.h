/* What /proc/self/stat says of this process. */
#ifndef BRG_FORK_STAT_H
#define BRG_FORK_STAT_H

#include <stdint.h>

/* Fields, counted from 1 as proc(5) does; those before STAT_PARENT are not read. */
enum {
    STAT_PARENT = 4,
    STAT_GROUP,
    STAT_SESSION,
    STAT_TERMINAL,
    STAT_THREADS = 20,
    STAT_START_CODE = 26,
    STAT_END_CODE,
    STAT_START_STACK,
    STAT_START_DATA = 45,
    STAT_END_DATA,
    STAT_START_BRK,
    STAT_ARG_START,
    STAT_ARG_END,
    STAT_ENV_START,
    STAT_ENV_END,
    STAT_FIELDS = 53
};

/* 0 or -errno. What the kernel does not tell is 0. */
int stat_read(uint64_t fields[STAT_FIELDS]);

#endif
