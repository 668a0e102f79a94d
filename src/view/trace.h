/* A trial of a program that asks the kernel past any libc (binary.h: static, Go): its system calls
 * are watched by ptrace, and its look-ups recorded as Brigade's libraries would.
 *
 * The tracer is nobody's child that the program could wait for, holds none of the program's
 * descriptors, and ends with it. If it dies or may not trace, the program goes on unrecorded.
 */
#ifndef BRG_VIEW_TRACE_H
#define BRG_VIEW_TRACE_H

#include "view/binary.h"
#include "view/view.h"

#include <stdint.h>

/* How what `file` names, searched in `path_list` as execvp does, must be started. Only what is
 * BINARY_IN_PLACE is traced: sanitizers refuse to be. */
enum binary_start trace_inspect(const char *file, const char *path_list);

/* Starts a tracer of this process, which is to execute the program next; `folder` is for records.
 * Returns when it watches, or has given up. */
void trace_trial(const char *folder, int32_t rank);

#endif
