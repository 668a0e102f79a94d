/* Standing for a rank. See stand.h. */
#include "fork/stand.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/sys.h"
#include "fork/arrivals.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    STACK = 16 << 10
};

/* For other ranks to end, which end together as a rule. */
#define ACCOUNT_NS UINT64_C(5000000000)

/* What the witness and this process share; written by one task each. */
struct witness {
    int notes;            /* where it writes */
    int socket;           /* to the template; -1 before there is a rank */
    pid_t parent;         /* this process */
    struct timespec late; /* for tests: before it looks for a signal */
};

static struct witness shared;

/* Runs in this process's memory: raw system calls only, and nothing thread-local. It outlives this
 * process, unless both are killed, and its descriptors are this process's: the template hears no
 * end before it has. SIGCONT, so that it goes on if its group was stopped. */
static int bear_witness(void *nothing)
{
    const struct witness *w = &shared;
    uint64_t all = ~UINT64_C(0);
    (void)nothing;
    sys_call(SYS_prctl, PR_SET_PDEATHSIG, SIGCONT, 0, 0, 0, 0);
    while (sys_getppid() == w->parent) {
        if (w->late.tv_nsec)
            sys_call(SYS_nanosleep, (long)&w->late, 0, 0, 0, 0, 0);
        long number = sys_call(SYS_rt_sigtimedwait, (long)&all, 0, 0, sizeof all, 0, 0);
        uint8_t note = (uint8_t)number;
        if (number > 0)
            sys_write(w->notes, &note, 1);
    }
    const struct fork_message alone = fork_message(FORK_ALONE, 0, 0, NULL);
    if (w->socket >= 0)
        fork_send(w->socket, &alone, NULL);
    return 0;
}

/* BRIGADE_FAULT=fork.witness:N: the witness is N microseconds late, as on a busy machine. */
static struct timespec witness_late(void)
{
    static const char *const names[] = {"fork.witness"};
    struct brg_fault fault;
    brg_fault_read(&fault, names, 1, 0);
    return (struct timespec){0, fault.point ? (long)(fault.n % 1000000 * 1000) : 0};
}

int standing_begin(struct standing *s, int signals)
{
    int ends[2];
    *s = (struct standing){.signals = signals, .notes = -1};
    s->stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (s->stack == MAP_FAILED)
        return -errno;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        int err = -errno;
        munmap(s->stack, STACK);
        return err;
    }
    shared = (struct witness){ends[1], -1, getpid(), witness_late()};
    s->notes = ends[0];
    s->witness =
        clone(bear_witness, (char *)s->stack + STACK, CLONE_VM | CLONE_FILES | CLONE_FS, NULL);
    if (s->witness > 0)
        return 0;
    int err = -errno;
    close(ends[0]);
    close(ends[1]);
    munmap(s->stack, STACK);
    return err;
}

void standing_undo(struct standing *s)
{
    kill(s->witness, SIGKILL);
    while (waitpid(s->witness, NULL, __WALL) < 0 && errno == EINTR)
        ;
    close(s->notes);
    munmap(s->stack, STACK);
    /* its end of the pipe goes with the exec */
}

/* ---- passing signals on ---- */

/* Whether a signal came that is the rank's or the template's; *number is 0 for the template's. */
static int next_signal(const struct standing *s, uint32_t *number)
{
    struct signalfd_siginfo info;
    while (read(s->signals, &info, sizeof info) == sizeof info) {
        *number = fork_is_wake(&info) ? 0 : info.ssi_signo;
        if (*number < ARRIVALS_SIGNALS && *number != SIGCHLD)
            return 1;
    }
    return 0;
}

/* The rank holds its signals back until it knows which came before: those that it does not have,
 * because it was not in the group yet, it sends to itself. */
static void let_begin(const struct standing *s, int line)
{
    uint32_t number;
    struct fork_message go = fork_message(FORK_GO, 0, 0, NULL);
    while (next_signal(s, &number))
        go.signals |= number ? UINT64_C(1) << (number - 1) : 0;
    fork_send(line, &go, NULL);
    close(line);
}

static void read_notes(const struct standing *s, struct arrivals *a)
{
    uint8_t notes[64];
    ssize_t n;
    while ((n = read(s->notes, notes, sizeof notes)) > 0)
        for (ssize_t i = 0; i < n; i++)
            if (notes[i] < ARRIVALS_SIGNALS)
                arrivals_noted(a, notes[i], brg_clock_ns());
}

static void read_signals(const struct standing *s, struct arrivals *a)
{
    uint64_t began = brg_clock_ns();
    uint32_t number;
    while (!arrivals_full(a)) {
        if (!next_signal(s, &number)) {
            arrivals_had_all(a, began);
            return;
        }
        if (number)
            arrivals_read(a, number, brg_clock_ns());
        else
            arrivals_woken(a, brg_clock_ns());
    }
}

/* Whether what is for this process's group is no business of the rank's. One that joined it has
 * got it already. One that has left it since would be in it without a fork if this process leads
 * the group: who does cannot leave. */
static int needs_no_group(const struct standing *s)
{
    pid_t group = getpgrp();
    return s->joined && (getpgid(s->rank) == group || group != getpid());
}

/* What was for the group is told, as a group, to a rank that is not in it and should be. */
static void pass_on(const struct standing *s, struct arrivals *a, int socket)
{
    uint32_t number;
    int for_group;
    while (arrivals_next(a, brg_clock_ns(), &number, &for_group)) {
        if (for_group && needs_no_group(s))
            continue;
        struct fork_message m = fork_message(FORK_SIGNAL, (int32_t)number, for_group, NULL);
        fork_send(socket, &m, NULL);
    }
}

/* ---- the rank's stops and its end ---- */

/* Does to this process what `number` does by default. */
static void suffer(int number)
{
    sigset_t only;
    signal(number, SIG_DFL);
    sigemptyset(&only);
    sigaddset(&only, number);
    kill(getpid(), number);
    sigprocmask(SIG_UNBLOCK, &only, NULL);
    sigprocmask(SIG_BLOCK, &only, NULL);
}

/* Stops as the rank has, by a signal that can be blocked (by SIGSTOP the template stops this
 * process itself), unless the template has said more by now: that it went on, or ended. Two
 * processes that were stopped together (a group was, or a step) go on in any order, so what is read
 * here may be long past; and nobody might let this process go on once more. The stop is pending
 * before it is looked: whatever the template says later is followed by a SIGCONT, which takes that
 * back. */
static void stop_as_rank(int number, int socket)
{
    struct pollfd more = {socket, POLLIN, 0};
    const struct timespec now = {0, 0};
    sigset_t only;
    signal(number, SIG_DFL);
    sigemptyset(&only);
    sigaddset(&only, number);
    kill(getpid(), number);
    if (poll(&more, 1, 0) != 0) {
        sigtimedwait(&only, NULL, &now); /* taken back */
        return;
    }
    sigprocmask(SIG_UNBLOCK, &only, NULL);
    sigprocmask(SIG_BLOCK, &only, NULL);
}

/* The core, if there is one, is the rank's; what takes cores by a pipe asks for no limit. */
static _Noreturn void end_like(int status)
{
    if (WIFEXITED(status))
        _exit(WEXITSTATUS(status));
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    suffer(WTERMSIG(status));
    _exit(128 + WTERMSIG(status));
}

int standing_unnoticed(int number)
{
    struct sigaction a = {0};
    return number == SIGCHLD || number == SIGCONT || number == SIGURG || number == SIGWINCH ||
           (sigaction(number, NULL, &a) == 0 && a.sa_handler == SIG_IGN);
}

/* Until the template, a child, has ended; or a signal says that this process should; or so long
 * that somebody may be waiting for this end before another rank can have its own. */
static void wait_for_template(const struct standing *s)
{
    struct signalfd_siginfo info;
    struct pollfd from = {s->signals, POLLIN, 0};
    uint64_t until = brg_clock_ns() + ACCOUNT_NS;
    while (waitpid(s->template, NULL, WNOHANG) == 0) {
        uint64_t now = brg_clock_ns();
        if (now >= until)
            return;
        if (poll(&from, 1, (int)((until - now) / 1000000) + 1) < 0 && errno != EINTR)
            return;
        while (read(s->signals, &info, sizeof info) == sizeof info) {
            int number = (int)info.ssi_signo;
            if (number == SIGTSTP || number == SIGTTIN || number == SIGTTOU)
                suffer(number);
            else if (!standing_unnoticed(number))
                return;
        }
    }
}

static void hear(const struct standing *s, int socket)
{
    struct fork_message m;
    int passed[FORK_PASSED];
    for (;;) {
        int got = fork_receive(socket, &m, passed, 0);
        if (got == -EAGAIN)
            return;
        if (got != 1)
            end_like(SIGKILL); /* the template is gone, and the rank with it */
        if (m.kind == FORK_ENDED && m.value == 0 && m.other && s->template > 0)
            wait_for_template(s);
        if (m.kind == FORK_ENDED)
            end_like(m.value);
        if (m.kind == FORK_STOPPED)
            stop_as_rank(m.value, socket);
    }
}

void standing_until_the_end(struct standing *s, int socket, int line, const struct fork_open *open)
{
    static struct arrivals arrivals;
    for (uint32_t i = 0; i < open->n; i++)
        close(open->numbers[i]);
    shared.socket = socket;
    signal(SIGCHLD, SIG_DFL); /* ignored, what the template used would be nobody's */
    let_begin(s, line);
    for (;;) {
        /* A SIGCONT that may have to be passed on comes before the rank's stops: nobody would send
         * another one for what this process stops by. */
        int hears = !arrivals_has(&arrivals, SIGCONT);
        struct pollfd from[] = {{hears ? socket : -1, POLLIN, 0},
                                {arrivals_full(&arrivals) ? -1 : s->signals, POLLIN, 0},
                                {s->notes, POLLIN, 0}};
        if (poll(from, 3, arrivals_patience_ms(&arrivals, brg_clock_ns())) < 0 && errno != EINTR)
            end_like(SIGKILL);
        read_notes(s, &arrivals);
        read_signals(s, &arrivals);
        pass_on(s, &arrivals, socket);
        if (!arrivals_has(&arrivals, SIGCONT))
            hear(s, socket);
    }
}
