/* See faults.h. */
#include "buffer/faults.h"
#include "base/fault.h"
#include "base/sys.h"

#include <errno.h>
#include <time.h>

enum fault_point {
    FAULT_NOSPACE = 1,
    FAULT_IO,
    FAULT_SHORT,
    FAULT_SLOW, /* its number: microseconds */
    FAULT_SLOW_READ
};
static const char *const names[] = {"buffer-enospc", "buffer-eio", "buffer-short", "buffer-slow",
                                    "buffer-slow-read"};
static struct brg_fault fault;
static uint64_t n_writes;

void faults_start(void)
{
    brg_fault_read(&fault, names, sizeof names / sizeof *names, 0);
}

static void wait_if(enum fault_point point)
{
    if (fault.point != (int)point)
        return;
    struct timespec time = {(time_t)(fault.n / 1000000), (long)(fault.n % 1000000) * 1000};
    sys_call(SYS_nanosleep, (long)&time, 0, 0, 0, 0, 0);
}

long faults_write(size_t n)
{
    wait_if(FAULT_SLOW);
    if (!fault.point || fault.point >= FAULT_SLOW ||
        __atomic_fetch_add(&n_writes, 1, __ATOMIC_RELAXED) != fault.n)
        return (long)n;
    return fault.point == FAULT_NOSPACE ? -ENOSPC
           : fault.point == FAULT_IO    ? -EIO
                                        : (long)(n + 1) / 2;
}

void faults_read(void)
{
    wait_if(FAULT_SLOW_READ);
}
