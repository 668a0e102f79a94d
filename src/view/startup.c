/* How long a process starts up. See startup.h. */
#include "view/startup.h"
#include "base/sys.h"

/* Of the process's own time, because on a crowded node it may wait long for its turn; and of the
 * clock's, because a program that sleeps has started, too. */
#define QUIET_CPU_NS UINT64_C(2000000000)
#define QUIET_WALL_NS UINT64_C(30000000000)
/* Of a rank, for a program that looks software up now and then as long as it runs. */
#define MOST_NS UINT64_C(120000000000)
/* So much the clock moves before the process's own time is asked for, which costs a system call. */
#define TICK_NS UINT64_C(100000000)

#ifdef BRG_FREESTANDING
static uint64_t coarse_now_ns(void)
{
    return sys_now_ns(CLOCK_REALTIME_COARSE);
}
#else
static uint64_t coarse_now_ns(void) /* without entering the kernel */
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
#endif

/* The time used by the process whose memory this is: a child of vfork is in its parent's. As the
 * kernel numbers the clocks of processes (linux/posix-timers.h), 2 for what the scheduler counts.
 */
static uint64_t used_ns(const struct view *v)
{
    return sys_now_ns((int)(~(unsigned)v->startup_pid << 3 | 2));
}

/* What follows writes into a view that is const to others: any thread may, and all write sense. */
static void begin(struct view *own, uint64_t now)
{
    uint64_t rank = __atomic_load_n(&own->slot->last_load_ns, __ATOMIC_RELAXED);
    if (rank < own->slot->start_ns)
        rank = own->slot->start_ns;
    own->last_software_cpu_ns = used_ns(own);
    own->last_software_ns = now;
    if (rank && now > rank + QUIET_WALL_NS)
        own->startup_over = 1;
}

static int goes_on(const struct view *v, uint64_t now)
{
    struct view *own = (struct view *)v;
    if (v->startup_over)
        return 0;
    if (!v->last_software_ns)
        begin(own, now);
    if (v->slot->start_ns && now > v->slot->start_ns + MOST_NS)
        own->startup_over = 1; /* only ever 0 -> 1 */
    if (now < v->last_software_ns + TICK_NS)
        return !v->startup_over;
    if (now > v->last_software_ns + QUIET_WALL_NS ||
        used_ns(v) > v->last_software_cpu_ns + QUIET_CPU_NS)
        own->startup_over = 1;
    return !v->startup_over;
}

int startup_goes_on(const struct view *v)
{
    return goes_on(v, coarse_now_ns());
}

void startup_note(const struct view *v)
{
    struct view *own = (struct view *)v;
    uint64_t now = coarse_now_ns();
    if (!goes_on(v, now))
        return;
    if (now > v->last_software_ns + TICK_NS)
        own->last_software_cpu_ns = used_ns(v);
    own->last_software_ns = now;
    if (now != __atomic_load_n(&v->slot->last_load_ns, __ATOMIC_RELAXED))
        __atomic_store_n(&v->slot->last_load_ns, now, __ATOMIC_RELAXED);
}

void startup_forked(struct view *v)
{
    v->startup_pid = (int)sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
    v->last_software_cpu_ns = 0;
}

void startup_begin(struct view *v)
{
    startup_forked(v);
    v->startup_over = 0;
    v->last_software_ns = 0;
}
