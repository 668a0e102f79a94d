/* The kernel's ptrace, as of 5.3: headers of older systems do not have all of it. */
#ifndef BRG_TRACE_KERNEL_H
#define BRG_TRACE_KERNEL_H

#include <linux/audit.h>
#include <linux/ptrace.h>
#include <stdint.h>

#ifndef PTRACE_GET_SYSCALL_INFO
#define PTRACE_GET_SYSCALL_INFO 0x420e
#define PTRACE_SYSCALL_INFO_NONE 0
#define PTRACE_SYSCALL_INFO_ENTRY 1
#define PTRACE_SYSCALL_INFO_EXIT 2
#define PTRACE_SYSCALL_INFO_SECCOMP 3
struct ptrace_syscall_info {
    uint8_t op, pad[3];
    uint32_t arch;
    uint64_t instruction_pointer, stack_pointer;
    union {
        struct {
            uint64_t nr, args[6];
        } entry;
        struct {
            int64_t rval;
            uint8_t is_error;
        } exit;
    };
};
#endif

#if defined(__x86_64__)
#define TRACE_ARCH AUDIT_ARCH_X86_64
#define TRACE_X32 0x40000000u /* a call's number has this bit in x32 mode */
#else
#define TRACE_ARCH AUDIT_ARCH_AARCH64
#endif

#endif
