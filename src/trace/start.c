/* How a process gets its tracer before it becomes the program.
 *
 *     program                     between        tracer
 *       fork ----------------------> fork ---------> seize the program
 *       wait for `between`          exit             "r": it watches; "x": it was refused
 *       with filter: install it; close the pipe <--- end of the pipe: watch
 *         refused: "a" ----------------------------> stop it at every call; "r"
 *       execute
 *
 * What must stay true: once it is seized, a signal stops the program until the tracer lets it go on
 * (SIGKILL too, at PTRACE_EVENT_EXIT). So the tracer never waits for the program alone, but for its
 * stops as well, and passes on each signal that stopped it.
 */
#include "base/newer.h"
#include "trace/call_info.h"
#include "trace/engine.h"
#include "trace/entry.h"
#include "trace/filter.h"
#include "trace/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define FOLLOW                                                                                \
    (PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | \
     PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT)

enum {
    LOOK_MS = 5 /* only a signal in the moment of starting waits that long */
};

static long trace(long request, pid_t tid, long addr, long data)
{
    return syscall(SYS_ptrace, request, tid, addr, data);
}

/* Closes all from 3 on but two, of which `low` is the lower. */
static void close_others(int low, int high)
{
    long most = sysconf(_SC_OPEN_MAX);
    if ((low == 3 || syscall(SYS_close_range, 3, low - 1, 0) == 0) &&
        (high == low + 1 || syscall(SYS_close_range, low + 1, high - 1, 0) == 0) &&
        syscall(SYS_close_range, high + 1, ~0u, 0) == 0)
        return;
    for (int fd = 3; fd < (most < 65536 ? most : 65536); fd++)
        if (fd != low && fd != high)
            close(fd);
}

/* Lets go of all that is the program's: its streams, descriptors, terminal, working directory. */
static void stand_apart(int keep, int keep_too)
{
    setsid();
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    close_others(keep < keep_too ? keep : keep_too, keep < keep_too ? keep_too : keep);
    if (chdir("/") != 0)
        return;
    for (int signum = 1; signum < NSIG; signum++)
        if (signum != SIGCHLD)
            signal(signum, SIG_IGN); /* it ends with the program, not before */
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Each task has one open: as many as we may. */
static void take_descriptors(void)
{
    struct rlimit most;
    if (getrlimit(RLIMIT_NOFILE, &most) != 0)
        return;
    most.rlim_cur = most.rlim_max;
    setrlimit(RLIMIT_NOFILE, &most);
}

/* Lets the program go on after a stop: with the signal that stopped it, or waiting for SIGCONT. */
static void let_on(pid_t program, int status, long how)
{
    int signum = WSTOPSIG(status), event = status >> 16;
    if (event == PTRACE_EVENT_STOP && signum != SIGTRAP && how != PTRACE_DETACH)
        how = PTRACE_LISTEN;
    trace(how, program, 0, event || signum == (SIGTRAP | 0x80) ? 0 : signum);
}

/* Stops the program, which waits, and lets it go on so that it stops as `how` says. Any stop will
 * do: that of a signal may come first. 0 or errno. */
static int take(pid_t program, enum trace_how how)
{
    struct ptrace_syscall_info info;
    const long filtered = PTRACE_O_TRACESECCOMP | PTRACE_O_EXITKILL;
    long options = how == TRACE_SECCOMP ? FOLLOW | filtered : FOLLOW;
    int status;
    if (trace(PTRACE_INTERRUPT, program, 0, 0) != 0 || waitpid(program, &status, __WALL) != program)
        return errno;
    if (!WIFSTOPPED(status))
        return ESRCH;
    if (trace_call_info(program, 0, 0, &info) <= 0) {
        let_on(program, status, PTRACE_DETACH);
        return ENOSYS;
    }
    trace(PTRACE_SETOPTIONS, program, 0, options);
    let_on(program, status, how == TRACE_SECCOMP ? PTRACE_CONT : PTRACE_SYSCALL);
    return 0;
}

/* Whether the program has answered that its filter was refused; if not, it has closed the pipe or
 * is gone. A stop after that is left to trace_watch: the pipe is looked at once more while the
 * program stands still. */
static int is_refused(pid_t program, int answer)
{
    struct pollfd said = {.fd = answer, .events = POLLIN};
    for (;;) {
        siginfo_t stop = {0};
        char byte;
        int status, options = WSTOPPED | WNOHANG | WNOWAIT | __WALL;
        int stopped = waitid(P_PID, (id_t)program, &stop, options) == 0 && stop.si_pid == program;
        if (poll(&said, 1, stopped ? 0 : LOOK_MS) > 0)
            return read(answer, &byte, 1) > 0;
        if (stopped && waitpid(program, &status, __WALL) == program && WIFSTOPPED(status))
            let_on(program, status, PTRACE_CONT);
    }
}

static void run_tracer(struct trace_sink *sink, pid_t program, pid_t parent, int32_t rank,
                       enum trace_how how, int ready, int answer)
{
    stand_apart(ready, answer);
    take_descriptors();
    if (sink->open(sink, program) != 0)
        _exit(1);
    int why = trace(PTRACE_SEIZE, program, 0, 0) != 0 ? errno : take(program, how);
    if (!why && sink->entry)
        trace_entry_prepare();
    if (!why && write(ready, "r", 1) != 1)
        why = EPIPE;
    if (!why && how == TRACE_SECCOMP && is_refused(program, answer)) {
        how = TRACE_ALL;
        why = take(program, how);
        if (!why && write(ready, "r", 1) != 1)
            why = EPIPE;
    }
    sink->start(sink, why ? TRACE_NOT : how, why);
    if (why) {
        sink->flush(sink, NULL, 1);
        _exit(1);
    }
    close(ready);
    close(answer);
    trace_watch(sink, program, parent, rank, how);
    _exit(0);
}

/* 'r': the tracer is there; something else: it is not. */
static char hear(int fd)
{
    char byte = 'x';
    while (read(fd, &byte, 1) < 0 && errno == EINTR)
        ;
    return byte;
}

static enum trace_how settle(enum trace_how wanted, int ready, int answer)
{
    if (hear(ready) != 'r')
        return TRACE_NOT;
    if (wanted == TRACE_ALL)
        return TRACE_ALL;
    if (trace_filter_install() == 0) {
        close(answer);
        return TRACE_SECCOMP;
    }
    if (write(answer, "a", 1) != 1)
        return TRACE_NOT;
    return hear(ready) == 'r' ? TRACE_ALL : TRACE_NOT;
}

/* A pipe none of whose ends has a stream's number: where the program has closed its streams, the
 * tracer opens others there. */
static int create_pipe(int ends[2])
{
    int made[2];
    if (pipe2(made, O_CLOEXEC) != 0)
        return -1;
    for (int i = 0; i < 2; i++) {
        ends[i] = fcntl(made[i], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        close(made[i]);
    }
    if (ends[0] >= 0 && ends[1] >= 0)
        return 0;
    close(ends[0]);
    close(ends[1]);
    return -1;
}

enum trace_how trace_start(struct trace_sink *sink, enum trace_how wanted, int32_t rank)
{
    int ready[2], answer[2];
    pid_t program = getpid(), parent = getppid();
    if (create_pipe(ready) != 0)
        return TRACE_NOT;
    if (create_pipe(answer) != 0) {
        close(ready[0]);
        close(ready[1]);
        return TRACE_NOT;
    }
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    /* a child that ends without SIGCHLD: none must be pending for the program */
    pid_t between = (pid_t)syscall(SYS_clone, 0, 0, 0, 0, 0);
    if (between == 0) {
        close(ready[0]);
        close(answer[1]);
        if (fork() == 0)
            run_tracer(sink, program, parent, rank, wanted, ready[1], answer[0]);
        _exit(0);
    }
    close(ready[1]);
    close(answer[0]);
    while (between > 0 && waitpid(between, NULL, __WALL) < 0 && errno == EINTR)
        ;
    enum trace_how how = between > 0 ? settle(wanted, ready[0], answer[1]) : TRACE_NOT;
    if (how != TRACE_SECCOMP)
        close(answer[1]);
    close(ready[0]);
    prctl(PR_SET_PTRACER, 0);
    return how;
}
