/* The breakpoint at the entry point. See entry.h. */
#include "trace/entry.h"
#include "trace/remote.h"

#include <elf.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <unistd.h>

#ifndef TRAP_HWBKPT /* of the C library's headers from glibc 2.29 on */
#define TRAP_HWBKPT 4
#endif

static long trace(long request, pid_t tid, long addr, long data)
{
    return syscall(SYS_ptrace, request, tid, addr, data);
}

#if defined(__x86_64__)
#define REGISTER(n) ((long)(offsetof(struct user, u_debugreg) + (n) * sizeof(long)))

/* Debug register 0 holds the address; bit 0 of register 7 makes this thread stop before it executes
 * what is there. */
static int set(pid_t tid, uint64_t address)
{
    return trace(PTRACE_POKEUSER, tid, REGISTER(0), (long)address) == 0 &&
           trace(PTRACE_POKEUSER, tid, REGISTER(7), 1) == 0;
}

void trace_entry_clear(pid_t tid)
{
    trace(PTRACE_POKEUSER, tid, REGISTER(7), 0);
}
#else
/* The first pair of struct user_hwdebug_state, whose header differs from libc to libc. */
struct breakpoint {
    uint32_t info, pad;
    uint64_t address;
    uint32_t control, pad2;
};

static int put(pid_t tid, uint64_t address, uint32_t control)
{
    struct breakpoint one = {0, 0, address, control, 0};
    struct iovec piece = {&one, sizeof one};
    return trace(PTRACE_SETREGSET, tid, 0x402 /* NT_ARM_HW_BREAK */, (long)&piece) == 0;
}

/* Enabled, at EL0, all four bytes of an instruction. */
static int set(pid_t tid, uint64_t address)
{
    return put(tid, address, 0xfu << 5 | 2u << 1 | 1u);
}

void trace_entry_clear(pid_t tid)
{
    put(tid, 0, 0);
}
#endif

/* Whether a task executes ld.so itself, which is to load the program (Nix, AppImage). */
static int is_loader(pid_t tid)
{
    char path[32], target[PATH_MAX];
    snprintf(path, sizeof path, "/proc/%d/exe", (int)tid);
    ssize_t n = readlink(path, target, sizeof target - 1);
    target[n > 0 ? n : 0] = '\0';
    const char *slash = strrchr(target, '/');
    return slash && strncmp(slash + 1, "ld", 2) == 0 && strstr(slash, ".so");
}

/* 0: not known. The kernel tells a program's with ld.so's base; without one it is that of the file
 * executed: a static program's, or ld.so's own. */
static uint64_t entry_of(pid_t tid)
{
    union {
        char bytes[4096];
        Elf64_auxv_t values[1];
    } auxv;
    long n = remote_file(tid, "auxv", auxv.bytes, sizeof auxv);
    uint64_t entry = 0, base = 0;
    for (long i = 0; (i + 1) * (long)sizeof *auxv.values <= n; i++) {
        entry = auxv.values[i].a_type == AT_ENTRY ? auxv.values[i].a_un.a_val : entry;
        base = auxv.values[i].a_type == AT_BASE ? auxv.values[i].a_un.a_val : base;
    }
    return base || !is_loader(tid) ? entry : 0;
}

void trace_entry_prepare(void)
{
    struct perf_event_attr nothing = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof nothing,
        .config = PERF_COUNT_SW_DUMMY,
        .disabled = 1,
        .exclude_kernel = 1,
    };
    syscall(SYS_perf_event_open, &nothing, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

uint64_t trace_entry_await(pid_t tid)
{
    char status[4096];
    const long long trap = 1ll << (SIGTRAP - 1);
    if (remote_file(tid, "status", status, sizeof status) <= 0 ||
        ((remote_status(status, "SigBlk", 16) | remote_status(status, "SigIgn", 16)) & trap))
        return 0;
    uint64_t entry = entry_of(tid);
    return entry && set(tid, entry) ? entry : 0;
}

int trace_entry_reached(pid_t tid, uint64_t entry)
{
    siginfo_t info;
    return trace(PTRACE_GETSIGINFO, tid, 0, (long)&info) == 0 && info.si_signo == SIGTRAP &&
           info.si_code == TRAP_HWBKPT && (uint64_t)(uintptr_t)info.si_addr == entry;
}
