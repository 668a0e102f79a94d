/* What a process is given by whoever starts it, and a module sets for itself: how much of what it
 * may use, how soon it runs, and where. A rank that is forked later has its own of that. See
 * watch.h. */
#include "view/watch.h"
#include "view/late.h"

#include <errno.h>

#define REAL(name, ...) (watch_real()->name ? watch_real()->name(__VA_ARGS__) : no_such_call())

#define LIMITS_SET(name, ...) \
    watch_note("limits", ""); \
    return REAL(name, __VA_ARGS__)

/* The real function of the library that threads are in, which may have come since. */
#define OF_THREADS(name) \
    (watch_real()->name ? watch_real()->name : (__typeof__(&watch_##name))late_find(#name))

static int no_such_call(void)
{
    errno = ENOSYS;
    return -1;
}

int watch_setrlimit(int resource, const struct rlimit *limit)
{
    LIMITS_SET(setrlimit, resource, limit);
}

int watch_setrlimit64(int resource, const struct rlimit *limit)
{
    LIMITS_SET(setrlimit64, resource, limit);
}

/* Without a new limit it is a question. */
int watch_prlimit(pid_t pid, int resource, const struct rlimit *limit, struct rlimit *before)
{
    if (!limit)
        return REAL(prlimit, pid, resource, limit, before);
    LIMITS_SET(prlimit, pid, resource, limit, before);
}

int watch_prlimit64(pid_t pid, int resource, const struct rlimit *limit, struct rlimit *before)
{
    if (!limit)
        return REAL(prlimit64, pid, resource, limit, before);
    LIMITS_SET(prlimit64, pid, resource, limit, before);
}

int watch_setpriority(int which, id_t who, int value)
{
    LIMITS_SET(setpriority, which, who, value);
}

int watch_nice(int more)
{
    if (more == 0)
        return REAL(nice, more);
    LIMITS_SET(nice, more);
}

int watch_sched_setscheduler(pid_t pid, int policy, const struct sched_param *how)
{
    LIMITS_SET(sched_setscheduler, pid, policy, how);
}

int watch_sched_setparam(pid_t pid, const struct sched_param *how)
{
    LIMITS_SET(sched_setparam, pid, how);
}

int watch_pthread_setschedparam(pthread_t thread, int policy, const struct sched_param *how)
{
    watch_note("limits", "");
    __typeof__(&watch_pthread_setschedparam) real = OF_THREADS(pthread_setschedparam);
    return real ? real(thread, policy, how) : ENOSYS;
}

int watch_sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *cpus)
{
    watch_note("bind", "call");
    return REAL(sched_setaffinity, pid, size, cpus);
}

int watch_pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *cpus)
{
    watch_note("bind", "call");
    __typeof__(&watch_pthread_setaffinity_np) real = OF_THREADS(pthread_setaffinity_np);
    return real ? real(thread, size, cpus) : ENOSYS;
}
