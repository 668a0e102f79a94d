/* What modules ask for that is not the same in every rank: time, names, random numbers; and what
 * they begin that does not outlive a fork: threads, children, sockets. See watch.h.
 */
#include "view/watch.h"
#include "view/late.h"
#include "view/handoff.h"
#include "base/object.h"
#include "base/sys.h"
#include "base/text.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>

__attribute__((visibility("default"))) struct view *brigade_handoff;

static struct watched_calls calls;
static int calls_state; /* 0, 1: one thread is at it, 2: there */

const struct watched_calls *watch_real(void)
{
    int expected = 0;
    if (__builtin_expect(__atomic_load_n(&calls_state, __ATOMIC_ACQUIRE) == 2, 1))
        return &calls;
    if (!__atomic_compare_exchange_n(&calls_state, &expected, 1, 0, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        return &calls; /* from inside, or another thread: what is not there yet is NULL */
#define WATCH(type, name, parameters) calls.name = (__typeof__(calls.name))next_function(#name);
#include "view/watch.def"
    __atomic_store_n(&calls_state, 2, __ATOMIC_RELEASE);
    return &calls;
}

void watch_note(const char *what, const char *detail)
{
    const struct view *v = brigade_handoff;
    if (!v || v->bytes != sizeof *v)
        return;
    int saved = errno;
    record_event(v, what, detail);
    errno = saved;
}

struct named {
    const void *code;
    const char *name;
};

static int look_for_name(struct dl_phdr_info *object, size_t size, void *context)
{
    struct named *asked = context;
    (void)size;
    if (!object_has(object, asked->code))
        return 0;
    asked->name = *object->dlpi_name ? object->dlpi_name : program_invocation_name;
    return 1;
}

/* The name of the object that the address lies in, or "". */
static const char *object_at(const void *address)
{
    struct named asked = {.code = address, .name = ""};
    dl_iterate_phdr(look_for_name, &asked);
    return asked.name;
}

/* "libffi" if that asks, which has reasons of its own: rules.py says which. */
static const char *library_at(const void *address)
{
    static const char library[] = "libffi.so";
    const char *path = object_at(address), *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    return strncmp(name, library, sizeof library - 1) == 0 ? "libffi" : "";
}

/* ---- time ---- */

/* Who has last asked for the time in this thread; NULL if that is recorded, or does not count.
 * Python asks each time it takes a lock, for the end of a wait that has none: what is asked for
 * just before a wait is the wait's. So it is recorded when the thread asks the next time. */
static __thread const char *asked_time;

/* Python asks before waits without an end, too: it does from 3.11 on, which has Py_Version, if it
 * was built for a C library with sem_clockwait (2.30). Taken for a wait's otherwise, what a module
 * asks for would be lost. */
static int asks_before_all_waits;

static void note_clock(int counts)
{
    const struct view *v = brigade_handoff;
    if (!v || v->bytes != sizeof *v)
        return;
    int saved = errno;
    if (asked_time)
        record_event_of(v, asked_time, "clock", "");
    asked_time = counts ? record_importing(v) : NULL;
    errno = saved;
}

/* That the process was watched at all: without this record nothing that it did not do counts. */
__attribute__((constructor)) static void start_of_watch(void)
{
    const struct view *v = brigade_handoff;
    watch_real();
    asks_before_all_waits = is_defined_by_any("Py_Version") && is_used_by_any("sem_clockwait");
    if (v && v->bytes == sizeof *v)
        record_add(v, "watch", 0, "", "", "");
}

static long answer(long result) /* of the kernel, as the libc gives it */
{
    if (result >= 0 || result < -4095)
        return result;
    errno = (int)-result;
    return -1;
}

/* The real function; before it has been found, `otherwise`. */
#define REAL_OR(name, otherwise, ...) \
    (watch_real()->name ? watch_real()->name(__VA_ARGS__) : (otherwise))

/* The same of the library that threads are in, which may have come since. */
#define THREADS_OR(name, otherwise, ...)                                           \
    (watch_real()->name || (calls.name = (__typeof__(calls.name))late_find(#name)) \
         ? calls.name(__VA_ARGS__)                                                 \
         : (otherwise))

/* The clock that _brigade_trial.py asks where one module ends and another goes on, so that nothing
 * is left to be recorded: the kernel's name for the processor time of whoever asks, which the C
 * library and Python have as CLOCK_THREAD_CPUTIME_ID. */
enum {
    SETTLES = -2
};

/* Of a process that is forked it begins anew, and is no end of a wait. */
static void note_processor_time(void)
{
    note_clock(0);
    watch_note("clock", "processor");
}

static void note_clock_of(clockid_t clock)
{
    if (clock == SETTLES)
        note_clock(0);
    else if (clock < 0 || clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID)
        note_processor_time();
    else
        note_clock(1);
}

int watch_clock_gettime(clockid_t clock, struct timespec *now)
{
    note_clock_of(clock);
    return REAL_OR(clock_gettime,
                   (int)answer(sys_call(SYS_clock_gettime, clock, (long)now, 0, 0, 0, 0)), clock,
                   now);
}

int watch_gettimeofday(struct timeval *now, void *zone)
{
    note_clock(1);
    return REAL_OR(gettimeofday,
                   (int)answer(sys_call(SYS_gettimeofday, (long)now, (long)zone, 0, 0, 0, 0)), now,
                   zone);
}

time_t watch_time(time_t *now)
{
    const char *library = library_at(__builtin_return_address(0));
    note_clock(!*library);
    if (*library)
        watch_note("clock", library);
    time_t seconds = (time_t)(sys_now_ns(CLOCK_REALTIME) / 1000000000u);
    if (!watch_real()->time && now)
        *now = seconds;
    return REAL_OR(time, seconds, now);
}

int watch_timespec_get(struct timespec *now, int base)
{
    note_clock(1);
    return REAL_OR(timespec_get, 0, now, base);
}

clock_t watch_clock(void)
{
    note_processor_time();
    return REAL_OR(clock, -1, );
}

clock_t watch_times(struct tms *used)
{
    note_processor_time();
    return REAL_OR(times, -1, used);
}

int watch_getrusage(int who, struct rusage *used)
{
    note_processor_time();
    return REAL_OR(getrusage, -1, who, used);
}

#define WAIT(name, ...) \
    asked_time = NULL;  \
    return THREADS_OR(name, -1, __VA_ARGS__)

int watch_sem_wait(sem_t *semaphore)
{
    if (asks_before_all_waits)
        asked_time = NULL;
    return THREADS_OR(sem_wait, -1, semaphore);
}

int watch_sem_trywait(sem_t *semaphore)
{
    if (asks_before_all_waits)
        asked_time = NULL;
    return THREADS_OR(sem_trywait, -1, semaphore);
}

int watch_sem_timedwait(sem_t *semaphore, const struct timespec *until)
{
    WAIT(sem_timedwait, semaphore, until);
}

int watch_sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *until)
{
    WAIT(sem_clockwait, semaphore, clock, until);
}

int watch_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                 const struct timespec *until)
{
    WAIT(pthread_cond_timedwait, condition, mutex, until);
}

int watch_pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock,
                                 const struct timespec *until)
{
    WAIT(pthread_cond_clockwait, condition, mutex, clock, until);
}

/* ---- who, and where ---- */

pid_t watch_getpid(void)
{
    watch_note("pid", library_at(__builtin_return_address(0)));
    return REAL_OR(getpid, sys_getpid(), );
}

pid_t watch_getppid(void)
{
    watch_note("pid", "");
    return REAL_OR(getppid, sys_getppid(), );
}

pid_t watch_gettid(void)
{
    watch_note("pid", "thread");
    return REAL_OR(gettid, (pid_t)sys_call(SYS_gettid, 0, 0, 0, 0, 0, 0), );
}

pid_t watch_getpgrp(void)
{
    watch_note("pid", "group");
    return REAL_OR(getpgrp, (pid_t)sys_call(SYS_getpgid, 0, 0, 0, 0, 0, 0), );
}

pid_t watch_getpgid(pid_t pid)
{
    watch_note("pid", "group");
    return REAL_OR(getpgid, (pid_t)answer(sys_call(SYS_getpgid, pid, 0, 0, 0, 0, 0)), pid);
}

pid_t watch_getsid(pid_t pid)
{
    watch_note("pid", "session");
    return REAL_OR(getsid, (pid_t)answer(sys_call(SYS_getsid, pid, 0, 0, 0, 0, 0)), pid);
}

int watch_gethostname(char *name, size_t size)
{
    watch_note("host", "");
    return REAL_OR(gethostname, -1, name, size);
}

long watch_gethostid(void)
{
    watch_note("host", "");
    return REAL_OR(gethostid, 0, );
}

int watch_uname(struct utsname *name)
{
    watch_note("host", "");
    return REAL_OR(uname, (int)answer(sys_call(SYS_uname, (long)name, 0, 0, 0, 0, 0)), name);
}

static void note_terminal(int fd)
{
    if (fd >= 0 && fd <= 2)
        watch_note("terminal", "");
}

int watch_isatty(int fd)
{
    note_terminal(fd);
    return REAL_OR(isatty, 0, fd);
}

int watch_tcgetattr(int fd, struct termios *terminal)
{
    note_terminal(fd);
    return REAL_OR(tcgetattr, -1, fd, terminal);
}

int watch_ioctl(int fd, unsigned long request, ...)
{
    va_list args;
    va_start(args, request);
    void *argument = va_arg(args, void *);
    va_end(args);
    if (request == TCGETS || request == TIOCGWINSZ || request == TIOCGPGRP)
        note_terminal(fd);
    return REAL_OR(ioctl,
                   (int)answer(sys_call(SYS_ioctl, fd, (long)request, (long)argument, 0, 0, 0)), fd,
                   request, argument);
}

static void note_object(const char *what, const void *address)
{
    watch_note(what, object_at(address));
}

int watch_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *cpus)
{
    note_object("cpus", __builtin_return_address(0));
    return REAL_OR(sched_getaffinity, -1, pid, size, cpus);
}

int watch_pthread_getaffinity_np(pthread_t thread, size_t size, cpu_set_t *cpus)
{
    note_object("cpus", __builtin_return_address(0));
    return THREADS_OR(pthread_getaffinity_np, ENOSYS, thread, size, cpus);
}

int watch_sched_getcpu(void)
{
    note_object("cpus", __builtin_return_address(0));
    return REAL_OR(sched_getcpu, -1, );
}

/* ---- random numbers ---- */

/* Rust's standard library asks so for the keys of its hash tables (hashmap_random_keys), and for
 * nothing else. */
enum {
    HASH_KEYS_BYTES = 16,
    HASH_KEYS_FLAGS = 4 /* GRND_INSECURE, of Linux 5.6 */
};

/* The library that asks, at `address`, if it is neither Python's nor the program itself. */
static void note_getrandom(size_t n, unsigned int flags, const void *address)
{
    const char *name = object_at(address);
    int keys = n == HASH_KEYS_BYTES && flags == HASH_KEYS_FLAGS;
    int by_library = strstr(name, ".so") && !strstr(name, "/libpython");
    watch_note("random", keys ? "hash" : by_library ? name : "");
}

ssize_t watch_getrandom(void *bytes, size_t n, unsigned int flags)
{
    note_getrandom(n, flags, __builtin_return_address(0));
    return REAL_OR(getrandom, answer(sys_call(SYS_getrandom, (long)bytes, (long)n, flags, 0, 0, 0)),
                   bytes, n, flags);
}

int watch_getentropy(void *bytes, size_t n)
{
    watch_note("random", "");
    return REAL_OR(getentropy, -1, bytes, n);
}

/* The libc of before 2.36 has none of these three: whoever calls them has them of a library
 * (libbsd) that may have been loaded where we cannot look. */
static void random_bytes(void *bytes, size_t n)
{
    for (size_t done = 0; done < n;) {
        long got = sys_call(SYS_getrandom, (long)bytes + (long)done, (long)(n - done), 0, 0, 0, 0);
        done += got > 0 ? (size_t)got : 0;
    }
}

static uint32_t random_number(void)
{
    uint32_t number;
    random_bytes(&number, sizeof number);
    return number;
}

uint32_t watch_arc4random(void)
{
    watch_note("random", "");
    return REAL_OR(arc4random, random_number(), );
}

uint32_t watch_arc4random_uniform(uint32_t bound)
{
    watch_note("random", "");
    if (watch_real()->arc4random_uniform)
        return watch_real()->arc4random_uniform(bound);
    uint32_t number, first = bound ? -bound % bound : 0; /* of as many numbers for each result */
    do
        number = random_number();
    while (number < first);
    return bound ? number % bound : 0;
}

void watch_arc4random_buf(void *bytes, size_t n)
{
    watch_note("random", "");
    if (watch_real()->arc4random_buf)
        watch_real()->arc4random_buf(bytes, n);
    else
        random_bytes(bytes, n);
}

/* ---- threads, children, sockets, folders ---- */

/* Whose the thread is: the object in which it starts. */
int watch_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, thread_start *start,
                         void *argument)
{
    note_object("thread", (void *)(uintptr_t)start);
    return THREADS_OR(pthread_create, ENOSYS, thread, attributes, start, argument);
}

pid_t watch_fork(void)
{
    watch_note("child", "");
    return REAL_OR(fork, -1, );
}

int watch_system(const char *command)
{
    watch_note("child", "");
    return REAL_OR(system, -1, command);
}

FILE *watch_popen(const char *command, const char *mode)
{
    watch_note("child", "");
    return REAL_OR(popen, NULL, command, mode);
}

static void note_socket(int family)
{
    char number[16];
    struct text t = text_in(number, sizeof number);
    text_number(&t, (uint64_t)(unsigned)family, 10);
    watch_note("socket", number);
}

int watch_socket(int family, int type, int protocol)
{
    note_socket(family);
    return REAL_OR(socket, -1, family, type, protocol);
}

int watch_socketpair(int family, int type, int protocol, int fds[2])
{
    note_socket(family);
    return REAL_OR(socketpair, -1, family, type, protocol, fds);
}

int watch_chdir(const char *path)
{
    watch_note("folder", path ? path : "");
    return REAL_OR(chdir, -1, path);
}

int watch_fchdir(int fd)
{
    watch_note("folder", "");
    return REAL_OR(fchdir, -1, fd);
}

/* ---- calls by number ---- */

long watch_syscall(long number, ...)
{
    va_list args;
    long a[6];
    va_start(args, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    switch (number) {
    case SYS_getrandom:
        note_getrandom((size_t)a[1], (unsigned int)a[2], __builtin_return_address(0));
        break;
    case SYS_getpid: watch_note("pid", ""); break;
    case SYS_gettid: watch_note("pid", "thread"); break;
    case SYS_clock_gettime: note_clock_of((clockid_t)a[0]); break;
    case SYS_times:
    case SYS_getrusage: note_processor_time(); break;
    case SYS_sched_getaffinity: note_object("cpus", __builtin_return_address(0)); break;
    case SYS_socket: note_socket((int)a[0]); break;
    case SYS_prlimit64:
        if (a[2])
            watch_note("limits", "");
        break;
    case SYS_setrlimit:
    case SYS_setpriority:
    case SYS_sched_setscheduler:
    case SYS_sched_setparam:
    case SYS_sched_setattr:
    case SYS_ioprio_set: watch_note("limits", ""); break;
    case SYS_sched_setaffinity: watch_note("bind", "call"); break;
    case SYS_set_mempolicy: watch_note("bind", ""); break;
    default: break;
    }
    return watch_real()->syscall ? watch_real()->syscall(number, a[0], a[1], a[2], a[3], a[4], a[5])
                                 : answer(sys_call(number, a[0], a[1], a[2], a[3], a[4], a[5]));
}
