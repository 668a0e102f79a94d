/* See call_info.h. */
#include "trace/call_info.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <unistd.h>

#if defined(__x86_64__)

/* The kernel puts -ENOSYS where the result will be before anybody is told of a call. */
static long by_registers(pid_t tid, int filtered, int inside, struct ptrace_syscall_info *info)
{
    struct user_regs_struct r;
    struct iovec to = {&r, sizeof r};
    if (syscall(SYS_ptrace, PTRACE_GETREGSET, tid, NT_PRSTATUS, &to) != 0)
        return -1;
    memset(info, 0, sizeof *info);
    info->arch = to.iov_len == sizeof r ? AUDIT_ARCH_X86_64 : AUDIT_ARCH_I386;
    if (filtered || ((long)r.rax == -ENOSYS && !inside)) {
        const uint64_t args[6] = {r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9};
        info->op = filtered ? PTRACE_SYSCALL_INFO_SECCOMP : PTRACE_SYSCALL_INFO_ENTRY;
        info->entry.nr = r.orig_rax;
        for (int i = 0; i < 6; i++)
            info->entry.args[i] = args[i];
    } else {
        info->op = PTRACE_SYSCALL_INFO_EXIT;
        info->exit.rval = (int64_t)r.rax;
        info->exit.is_error = (int64_t)r.rax < 0 && (int64_t)r.rax >= -4095;
    }
    return (long)sizeof *info;
}

#else

static long by_registers(pid_t tid, int filtered, int inside, struct ptrace_syscall_info *info)
{
    (void)tid, (void)filtered, (void)inside, (void)info;
    errno = ENOSYS;
    return -1;
}

#endif

long trace_call_info(pid_t tid, int filtered, int inside, struct ptrace_syscall_info *info)
{
    static int missing; /* a kernel before 5.3 */
    if (!missing) {
        long n = syscall(SYS_ptrace, PTRACE_GET_SYSCALL_INFO, tid, sizeof *info, info);
        if (n > 0 || errno != EIO)
            return n;
        missing = 1;
    }
    return by_registers(tid, filtered, inside, info);
}
