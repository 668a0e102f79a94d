/* The filter as a program of the kernel's classic BPF. See filter.h.
 *
 *     other architecture, x32 number  -> stop, FOREIGN
 *     mmap                            -> stop, unless MAP_ANONYMOUS
 *     the other calls of the table    -> stop    (a binary search over their numbers)
 *     io_uring_setup                  -> stop
 *     everything else                 -> run; kernels from 5.11 on know that without asking
 */
#include "trace/filter.h"
#include "trace/calls.h"
#include "trace/kernel.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum {
    SPEC_ALLOW = 1 << 2, /* SECCOMP_FILTER_FLAG_SPEC_ALLOW */
    HEAD = 7,
    SEARCH = 2 * TRACE_CALLS - 1, /* a leaf a call, a fork between two; mmap is no leaf */
    RUN = HEAD + SEARCH,
    STOP,
    FOREIGN,
    LENGTH
};

#define FIELD(name) offsetof(struct seccomp_data, name)
#define LOAD(at) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at)
#define JUMP(how, value, yes, no) BPF_JUMP(BPF_JMP | how | BPF_K, value, yes, no)

/* From the instruction at `from` to the one at `to`. */
static uint8_t far(int from, int to)
{
    return (uint8_t)(to - from - 1);
}

/* A search for `n` ascending numbers, from the instruction at `at` on. Returns where it ends. */
static int put_search(struct sock_filter *code, int at, const uint32_t *numbers, int n)
{
    int half = n / 2;
    if (n == 1) {
        code[at] = (struct sock_filter)JUMP(BPF_JEQ, *numbers, far(at, STOP), far(at, RUN));
        return at + 1;
    }
    int upper = put_search(code, at + 1, numbers, half);
    code[at] = (struct sock_filter)JUMP(BPF_JGE, numbers[half], far(at, upper), 0);
    return put_search(code, upper, numbers + half, n - half);
}

static int ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void build(struct sock_filter *code)
{
    uint32_t numbers[TRACE_CALLS];
    int n = 0;
    numbers[n++] = TRACE_RING_SETUP;
    for (int i = 0; i < TRACE_CALLS; i++)
        if (trace_calls[i].id != TRACE_mmap)
            numbers[n++] = trace_calls[i].nr;
    qsort(numbers, (size_t)n, sizeof *numbers, ascending);
    const struct sock_filter head[HEAD] = {
        LOAD(FIELD(arch)),
        JUMP(BPF_JEQ, TRACE_ARCH, 0, far(1, FOREIGN)),
        LOAD(FIELD(nr)),
#ifdef TRACE_X32
        JUMP(BPF_JGE, TRACE_X32, far(3, FOREIGN), 0),
#else
        JUMP(BPF_JA, 0, 0, 0),
#endif
        JUMP(BPF_JEQ, SYS_mmap, 0, far(4, HEAD)),
        LOAD(FIELD(args[3])), /* its low half: both platforms are little-endian */
        JUMP(BPF_JSET, MAP_ANONYMOUS, far(6, RUN), far(6, STOP)),
    };
    for (int i = 0; i < HEAD; i++)
        code[i] = head[i];
    put_search(code, HEAD, numbers, n);
    code[RUN] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[STOP] =
        (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE | TRACE_FILTER_CALL);
    code[FOREIGN] =
        (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE | TRACE_FILTER_FOREIGN);
}

/* Kernels before 5.16 else also turn speculation off, which slows all that the program computes. */
static int put(const struct sock_fprog *program)
{
    unsigned flags = SPEC_ALLOW;
    long err = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, program);
    if (err != 0 && errno == EINVAL) /* before 4.17 */
        err = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, program);
    return err == 0 ? 0 : -errno;
}

int trace_filter_install(void)
{
    struct sock_filter code[LENGTH];
    struct sock_fprog program = {LENGTH, code};
    _Static_assert(LENGTH < 256, "a jump reaches no further");
    build(code);
    int err = put(&program);
    if (err == -EACCES)
        err = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? put(&program) : -errno;
    return err;
}
