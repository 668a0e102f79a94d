/* Which devices a process may use, as far as whoever started it decides.
 *
 * A control group may let a task use one accelerator of a node and no other. Slurm does so for each
 * task (`--gpus-per-task`, with ConstrainDevices), in the group that is the task's alone. A rank
 * stays in its template's group.
 */
#ifndef BRG_FORK_DEVICES_H
#define BRG_FORK_DEVICES_H

#include <stdint.h>

/* A digest of the character devices that this process may not open for reading and writing. Those
 * that it may are not in it: drivers make some when they are first used. Raw system calls only. */
uint64_t devices_denied(void);

#endif
