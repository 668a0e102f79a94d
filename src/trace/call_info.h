/* What a task that has stopped at a system call is about to do, or has done. */
#ifndef BRG_TRACE_CALL_INFO_H
#define BRG_TRACE_CALL_INFO_H

#include "trace/kernel.h"

#include <sys/types.h>

/* As PTRACE_GET_SYSCALL_INFO of Linux 5.3, and without it where registers tell the same (x86-64):
 * op, arch, and what belongs to the op. `filtered`: the stop is seccomp's. `inside`: the task's
 * last stop was at the beginning of a call, which registers do not tell. Returns > 0, or -1 with
 * errno: ENOSYS where it cannot be known. */
long trace_call_info(pid_t tid, int filtered, int inside, struct ptrace_syscall_info *info);

#endif
