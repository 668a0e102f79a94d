/* The loop of the tracer. See engine.h; docs/explanation/tracing.md has the stops in a drawing. */
#include "trace/engine.h"
#include "trace/call_info.h"
#include "trace/entry.h"
#include "trace/look.h"
#include "trace/remote.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#ifdef TRACE_X32
#define IS_OWN(nr) (!((nr)&TRACE_X32))
#else
#define IS_OWN(nr) 1
#endif

enum {
    STATUS_BYTES = 4096,
    EARLY = 256,   /* more at a time than stops can wait for us */
    RESTARTS = 512 /* and up to 516: the kernel will make the call again */
};

struct engine {
    struct trace_sink *sink;
    struct trace_tasks tasks;
    struct trace_stops stops;
    pid_t program, parent;
    int32_t rank;
    uint32_t images;
    pid_t early[EARLY]; /* adopted, and may be gone, before their parents' word of them came */
    unsigned next_early;
    uint64_t now_ns;
    int filtered;
    int started;  /* the program has been executed */
    int finished; /* the sink knows that nobody is left */
};

static volatile sig_atomic_t tick;

static void on_tick(int signum)
{
    (void)signum;
    tick = 1;
}

static long trace(long request, pid_t tid, long addr, void *data)
{
    return syscall(SYS_ptrace, request, tid, addr, data);
}

/* --- Who there is ------------------------------------------------------------------------ */

static struct trace_image *new_image(struct engine *e, pid_t pid, pid_t parent, int32_t rank)
{
    struct trace_image *image = calloc(1, sizeof *image);
    if (!image)
        return NULL;
    image->number = ++e->images;
    image->pid = pid;
    image->parent = parent;
    image->rank = rank;
    image->start_ns = e->now_ns;
    return image;
}

/* A process that `before` has forked; NULL without memory. */
static struct trace_task *new_process(struct engine *e, pid_t pid, const struct trace_image *before)
{
    struct trace_image *image = new_image(e, pid, before->pid, before->rank);
    struct trace_task *task = image ? trace_task_create(&e->tasks, pid, image) : NULL;
    if (!task)
        free(image);
    else if (e->started)
        e->sink->begin(e->sink, image, before, 0);
    return task;
}

static void note_early(struct engine *e, pid_t tid)
{
    unsigned at = 0;
    while (at < EARLY && e->early[at])
        at++;
    e->early[at < EARLY ? at : e->next_early++ % EARLY] = tid;
}

/* A task that has stopped before its parent's word of it came. NULL if it is gone already. */
static struct trace_task *adopt(struct engine *e, pid_t tid)
{
    char status[STATUS_BYTES];
    if (remote_file(tid, "status", status, sizeof status) <= 0)
        return NULL;
    pid_t pid = (pid_t)remote_status(status, "Tgid", 10);
    pid_t parent = (pid_t)remote_status(status, "PPid", 10);
    struct trace_task *known = trace_task_find(&e->tasks, pid == tid ? parent : pid);
    known = known ? known : trace_task_find(&e->tasks, e->program);
    note_early(e, tid);
    if (known && pid != tid)
        return trace_task_create(&e->tasks, tid, known->image);
    return known ? new_process(e, pid, known->image) : NULL;
}

/* Whether a task was adopted without its parent's word. */
static int was_early(struct engine *e, pid_t tid)
{
    for (unsigned i = 0; i < EARLY; i++)
        if (e->early[i] == tid) {
            e->early[i] = 0;
            return 1;
        }
    return 0;
}

/* A task has made another, which may have been seen already, and be gone. */
static void on_child(struct engine *e, struct trace_task *task, int event)
{
    unsigned long child = 0;
    char path[64];
    if (trace(PTRACE_GETEVENTMSG, task->tid, 0, &child) != 0 || was_early(e, (pid_t)child) ||
        trace_task_find(&e->tasks, (pid_t)child))
        return;
    snprintf(path, sizeof path, "/proc/%d/task/%lu", (int)task->tid, child);
    if (event == PTRACE_EVENT_CLONE && access(path, F_OK) == 0)
        trace_task_create(&e->tasks, (pid_t)child, task->image);
    else
        new_process(e, (pid_t)child, task->image);
}

/* --- What they do ------------------------------------------------------------------------ */

static void on_entry(struct engine *e, struct trace_task *task, uint64_t nr, const uint64_t *args)
{
    const struct trace_call *call = trace_call_of(nr);
    task->call = NULL;
    task->image->rings += nr == TRACE_RING_SETUP;
    if (!call || !trace_call_counts(call, args))
        return;
    task->call = call;
    task->at_ns = e->now_ns;
    for (int i = 0; i < 6; i++)
        task->args[i] = args[i];
    trace_look_entry(task);
}

static void on_exit_of_call(struct engine *e, struct trace_task *task, int64_t result, int failed)
{
    struct trace_event event = {task, task->image, e->now_ns, failed ? (int)-result : 0,
                                failed ? -1 : result};
    if (task->call && e->started && !(failed && -result >= RESTARTS)) {
        trace_look_exit(task, event.error, event.result);
        e->sink->event(e->sink, &event);
    }
    task->call = NULL;
}

/* A stop of seccomp, or at the start or end of a call. */
static void on_call(struct engine *e, struct trace_task *task, int filtered)
{
    struct ptrace_syscall_info info;
    if (trace_call_info(task->tid, filtered, task->inside, &info) <= 0)
        return;
    task->inside = info.op == PTRACE_SYSCALL_INFO_ENTRY;
    switch (info.op) {
    case PTRACE_SYSCALL_INFO_EXIT:
        on_exit_of_call(e, task, info.exit.rval, info.exit.is_error);
        break;
    case PTRACE_SYSCALL_INFO_SECCOMP:
    case PTRACE_SYSCALL_INFO_ENTRY: {
        uint64_t args[6];
        if (info.op == PTRACE_SYSCALL_INFO_ENTRY && e->filtered)
            break;
        if (info.arch != TRACE_ARCH || !IS_OWN(info.entry.nr)) {
            task->image->foreign++;
            task->call = NULL;
            break;
        }
        for (int i = 0; i < 6; i++)
            args[i] = info.entry.args[i];
        on_entry(e, task, info.entry.nr, args);
        break;
    }
    default: break;
    }
}

/* Another thread than the leader called exec: it has the leader's number now. */
static void take_over(struct engine *e, struct trace_task *leader)
{
    unsigned long before = 0;
    struct trace_task *caller;
    if (trace(PTRACE_GETEVENTMSG, leader->tid, 0, &before) != 0 || (pid_t)before == leader->tid ||
        !(caller = trace_task_find(&e->tasks, (pid_t)before)))
        return;
    leader->call = caller->call;
    leader->inside = caller->inside;
    leader->at_ns = caller->at_ns;
    leader->flags = caller->flags;
    leader->by_fd = caller->by_fd;
    leader->unread = caller->unread;
    memcpy(leader->args, caller->args, sizeof leader->args);
    strcpy(leader->path, caller->path);
    strcpy(leader->other, caller->other);
}

/* Returns whether the task is to be let go. */
static int on_exec(struct engine *e, struct trace_task *task)
{
    take_over(e, task);
    trace_task_keep_only(&e->tasks, task);
    struct trace_image *before = task->image;
    int first = !e->started;
    struct trace_image *image =
        new_image(e, task->tid, first ? e->parent : before->parent, before->rank);
    if (!image)
        return 0;
    if (task->call)
        image->start_ns = task->at_ns;
    image->rank = trace_look_rank(task->tid, image->rank);
    if (!first)
        e->sink->end(e->sink, before, image->start_ns, -1);
    e->started = 1;
    image->executed = task->call ? task->path : NULL;
    int let_go = e->sink->begin(e->sink, image, first ? NULL : before, 1);
    image->executed = NULL;
    trace_task_move(task, image);
    struct ptrace_syscall_info info;
    if (e->sink->entry && !let_go && trace_call_info(task->tid, 0, task->inside, &info) > 0 &&
        info.arch == TRACE_ARCH)
        image->blind = !(image->entry = trace_entry_await(task->tid));
    return let_go;
}

/* Everything reaches the file; with the last process, the file's end too. */
static void bring_out(struct engine *e)
{
    int last = !e->tasks.living;
    if (!e->finished)
        e->sink->flush(e->sink, &e->stops, last);
    e->finished = last;
}

static void ended(struct engine *e, struct trace_task *task, int status)
{
    struct trace_image *image = task->image;
    if (task->exiting || trace_task_leaves(&e->tasks, task) > 0 || !e->started)
        return;
    e->sink->end(e->sink, image, e->now_ns, status);
    if (image->pid == e->program || !e->tasks.living)
        bring_out(e);
}

static void on_exiting(struct engine *e, struct trace_task *task)
{
    unsigned long status = 0;
    trace(PTRACE_GETEVENTMSG, task->tid, 0, &status);
    ended(e, task, (int)status);
}

/* Whether a signal is the breakpoint's at the entry point. */
static int is_entry(struct engine *e, struct trace_task *task, int signum)
{
    struct trace_image *image = task->image;
    if (signum != SIGTRAP || !image->entry || !trace_entry_reached(task->tid, image->entry))
        return 0;
    trace_entry_clear(task->tid);
    image->entry = 0;
    e->sink->entry(e->sink, image, e->now_ns);
    return 1;
}

static int is_stop(int signum)
{
    return signum == SIGSTOP || signum == SIGTSTP || signum == SIGTTIN || signum == SIGTTOU;
}

/* Deals with a stop and lets the task go on. */
static void on_stop(struct engine *e, pid_t tid, int status)
{
    int signum = WSTOPSIG(status), event = status >> 16, pass = 0, let_go = 0, listen = 0;
    struct trace_task *task = trace_task_find(&e->tasks, tid);
    task = task ? task : adopt(e, tid);
    if (task && (signum == (SIGTRAP | 0x80) || event == PTRACE_EVENT_SECCOMP))
        on_call(e, task, event == PTRACE_EVENT_SECCOMP);
    else if (task && event == PTRACE_EVENT_EXEC)
        let_go = on_exec(e, task);
    else if (task && event == PTRACE_EVENT_EXIT)
        on_exiting(e, task);
    else if (event == PTRACE_EVENT_STOP)
        listen = is_stop(signum);
    else if (task && event)
        on_child(e, task, event);
    else if (!event)
        pass = task && is_entry(e, task, signum) ? 0 : signum;
    if (let_go)
        trace_task_destroy(&e->tasks, task);
    long how = let_go                                         ? PTRACE_DETACH
               : listen                                       ? PTRACE_LISTEN
               : !e->filtered || (task && task->call != NULL) ? PTRACE_SYSCALL
                                                              : PTRACE_CONT;
    trace(how, tid, 0, (void *)(intptr_t)pass);
}

static void on_gone(struct engine *e, pid_t tid, int status)
{
    struct trace_task *task = trace_task_find(&e->tasks, tid);
    if (!task)
        return;
    ended(e, task, status);
    trace_task_destroy(&e->tasks, task);
}

/* --- The loop ---------------------------------------------------------------------------- */

/* Wakes waitpid ten times a second, so that what was seen reaches the file. */
static void start_ticking(void)
{
    struct sigaction action = {.sa_handler = on_tick};
    struct itimerval every = {{0, 100000}, {0, 100000}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
}

void trace_watch(struct trace_sink *sink, pid_t program, pid_t parent, int32_t rank,
                 enum trace_how how)
{
    static struct engine engine;
    struct engine *e = &engine;
    int status;
    e->sink = sink;
    e->program = program;
    e->parent = parent;
    e->rank = rank;
    e->filtered = how == TRACE_SECCOMP;
    struct trace_image *image = new_image(e, program, parent, rank);
    if (!image || !trace_task_create(&e->tasks, program, image))
        return;
    e->images = 0; /* the program's own will be the first */
    start_ticking();
    for (;;) {
        pid_t tid = waitpid(-1, &status, __WALL);
        if (tid < 0 && errno != EINTR)
            break; /* nobody is left */
        if (tick) {
            tick = 0;
            bring_out(e);
        }
        if (tid < 0)
            continue;
        e->now_ns = brg_clock_ns();
        if (WIFSTOPPED(status))
            on_stop(e, tid, status);
        else
            on_gone(e, tid, status);
        e->stops.count++;
        e->stops.held_ns += brg_clock_ns() - e->now_ns;
    }
    e->tasks.living = 0;
    bring_out(e);
}
