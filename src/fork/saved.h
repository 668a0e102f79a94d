/* How much memory ranks share with the process that they were forked from. */
#ifndef BRG_FORK_SAVED_H
#define BRG_FORK_SAVED_H

#include <stdint.h>

/* Bytes without a file that process `pid` uses and does not have for itself: what it would have
 * had, less its part of it. 0 where the kernel does not tell. */
uint64_t saved_by(int pid);

#endif
