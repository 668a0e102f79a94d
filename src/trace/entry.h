/* When a program's own entry point is reached: ld.so and the constructors of libraries are done.
 *
 * A hardware breakpoint of the one thread that gets there: the program's text is not touched, and
 * neither forks nor threads have it. Where the processor or the kernel gives none, or the program
 * ignores or blocks SIGTRAP (the kernel would undo that), or is started through ld.so itself (its
 * entry point is then known to ld.so alone), the moment is not known. */
#ifndef BRG_TRACE_ENTRY_H
#define BRG_TRACE_ENTRY_H

#include <stdint.h>
#include <sys/types.h>

/* For the tracer, before the program starts: the kernel takes a few ms to turn on what
 * breakpoints need, once; kept on from here, as long as this process lives. */
void trace_entry_prepare(void);

/* For a task that is stopped in its exec: the address waited for, or 0 if that cannot be. */
uint64_t trace_entry_await(pid_t tid);

/* Whether a SIGTRAP with which a task is stopped means that it got there. */
int trace_entry_reached(pid_t tid, uint64_t entry);

/* Takes the breakpoint away. */
void trace_entry_clear(pid_t tid);

#endif
