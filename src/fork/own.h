/* What a process has that a child of fork would not have, or would have together with others. */
#ifndef BRG_FORK_OWN_H
#define BRG_FORK_OWN_H

#include <stdint.h>

/* Notes the alarm that this process was started with, which is not its own. */
void own_begin(void);

/* Whether it has one thread. */
int own_is_alone(void);

/* In words, what else of that this process has got; NULL: nothing. `shared` is the path of a file
 * that it may share with others. Memory that is locked or shared for writing, a timer. */
const char *own_besides(const char *shared);

/* Before the process executes itself once more: signals and timers, which an exec keeps, as they
 * were when it was started; bit s - 1: signal s was ignored. */
void own_as_started(uint64_t was_ignored);

#endif
