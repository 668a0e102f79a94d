/* How much memory a staged folder needs, and how much a node has. */
#ifndef BRG_STAGE_SPACE_H
#define BRG_STAGE_SPACE_H

#include <stdint.h>

#include "image/format.h"

struct space {
    uint64_t bytes;
    uint64_t inodes;
};

/* What staging the image `head` takes, with every file rounded up to whole pages. Pure. */
struct space space_needed(const void *head, uint32_t page_bytes);

/* What the file system of a directory can still take: its own free blocks and inodes; where it lies
 * in memory, also no more than the memory available to the machine and to this process's control
 * groups. A file system without a limit on inodes gives UINT64_MAX. Returns 0 or -errno. */
int space_free(int dir_fd, struct space *out);

/* Largest amount that the control groups of this process still allow; UINT64_MAX if none limits.
 * `proc` and `sys` are "/proc" and "/sys/fs/cgroup" except in tests. */
uint64_t space_cgroup(const char *proc, const char *sys);

#endif
