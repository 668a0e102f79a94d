/* What a call was asked, read from the task that asked it. */
#ifndef BRG_TRACE_LOOK_H
#define BRG_TRACE_LOOK_H

#include "trace/task.h"

/* Before the kernel does the call in task->call: fills path, other, flags and by_fd. What cannot be
 * read is "", and `unread` says so. */
void trace_look_entry(struct trace_task *task);

/* After it: the target that a readlink gave goes to `other`. */
void trace_look_exit(struct trace_task *task, int error, int64_t result);

/* The launcher's number in the environment of a task that has just executed, or `otherwise`. */
int32_t trace_look_rank(pid_t tid, int32_t otherwise);

/* Its environment as far as looked at by trace_look_rank last: strings, each with its NUL. */
const char *trace_look_environment(size_t *bytes);

#endif
