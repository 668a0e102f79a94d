/* The tracer. See trace.h. */
#include "view/trace.h"
#include "view/handoff.h"
#include "view/record.h"
#include "view/sys.h"
#include "view/text.h"
#include "view/trace_calls.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/ptrace.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OWN_ARCH AUDIT_ARCH_X86_64
#else
#define OWN_ARCH AUDIT_ARCH_AARCH64
#endif

/* One thread of the program, and the look-up that it is in. */
struct task {
    pid_t tid;
    const struct traced_call *call; /* NULL: in none */
    uint64_t flags;
    char path[PATH_MAX];
    struct task *next;
};

struct tracer {
    struct view view;
    struct task *tasks;
    pid_t program, parent;
    int32_t rank;
    int started; /* the program has been executed */
};

static enum binary_start inspect(const char *path)
{
    char head[BINARY_HEAD];
    int fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
    long n = fd < 0 ? 0 : sys_read(fd, head, sizeof head);
    enum binary_start start = n > 0 ? binary_inspect(fd, head, (size_t)n) : BINARY_JOINS;
    sys_close(fd);
    return start;
}

enum binary_start trace_inspect(const char *file, const char *path_list)
{
    char path[PATH_MAX];
    if (strchr(file, '/'))
        return inspect(file);
    for (const char *p = path_list ? path_list : "/bin:/usr/bin"; *p; p += *p == ':') {
        size_t n = strcspn(p, ":");
        struct text t = text_in(path, sizeof path);
        text_bytes(&t, p, n);
        text_add(&t, n ? "/" : "");
        text_add(&t, file);
        p += n;
        if (!t.full && sys_access(path, X_OK) == 0)
            return inspect(path);
    }
    return BINARY_JOINS;
}

#ifndef PTRACE_GET_SYSCALL_INFO
void trace_start(const char *folder, int32_t rank)
{
    (void)folder;
    (void)rank;
}
#else

static long trace(int request, pid_t tid, long addr, void *data)
{
    return syscall(SYS_ptrace, request, tid, addr, data);
}

static struct task *task_of(struct tracer *t, pid_t tid)
{
    for (struct task *k = t->tasks; k; k = k->next)
        if (k->tid == tid)
            return k;
    struct task *k = calloc(1, sizeof *k);
    if (k) {
        k->tid = tid;
        k->next = t->tasks;
        t->tasks = k;
    }
    return k;
}

static void forget(struct tracer *t, pid_t tid)
{
    for (struct task **at = &t->tasks; *at; at = &(*at)->next) {
        if ((*at)->tid != tid)
            continue;
        struct task *gone = *at;
        *at = gone->next;
        free(gone);
        return;
    }
}

/* What a file or a link in /proc of a process says. Returns how many strings, of a file. */
static int read_proc(pid_t pid, const char *name, char *buf, size_t size, int is_link)
{
    char path[64];
    struct text t = text_in(path, sizeof path);
    text_add(&t, "/proc/");
    text_number(&t, (uint64_t)pid, 10);
    text_add(&t, name);
    long n = -1;
    int fd = is_link ? -1 : sys_open(path, O_RDONLY | O_CLOEXEC, 0);
    if (is_link)
        n = sys_readlink(path, buf, size - 1);
    else if (fd >= 0)
        n = sys_read(fd, buf, size - 1);
    sys_close(fd);
    n = n > 0 ? n : 0;
    int count = 0;
    for (long i = 0; !is_link && i < n; i++) { /* joined, as the record has arguments */
        if (buf[i] != '\0')
            continue;
        buf[i] = i + 1 < n ? '\x1f' : '\0';
        count++;
    }
    buf[n] = '\0';
    return count;
}

/* The `process` and `argv` records of the program, once it runs. */
static void begin(struct tracer *t)
{
    char parent[16], rank[16] = "", cwd[PATH_MAX], arguments[2 * PATH_MAX];
    struct text p = text_in(parent, sizeof parent), r = text_in(rank, sizeof rank);
    text_number(&p, (uint64_t)t->parent, 10);
    if (t->rank >= 0)
        text_signed(&r, t->rank);
    read_proc(t->program, "/exe", t->view.exe, sizeof t->view.exe, 1);
    read_proc(t->program, "/cwd", cwd, sizeof cwd, 1);
    int count = read_proc(t->program, "/cmdline", arguments, sizeof arguments, 0);
    record_add(&t->view, "process", t->program, parent, t->view.exe, rank);
    record_add(&t->view, "argv", count, "", cwd, arguments);
    t->started = 1;
}

/* Whether what a task has become records itself. */
static int records_itself(pid_t tid)
{
    char path[64], environment[64 << 10];
    struct text t = text_in(path, sizeof path);
    text_add(&t, "/proc/");
    text_number(&t, (uint64_t)tid, 10);
    text_add(&t, "/exe");
    if (inspect(path) != BINARY_JOINS)
        return 0;
    read_proc(tid, "/environ", environment, sizeof environment, 0);
    return strstr(environment, BRG_AUDIT_NAME) != NULL;
}

static void on_call(struct tracer *t, pid_t tid)
{
    struct ptrace_syscall_info info;
    struct task *k = task_of(t, tid);
    if (!k || trace(PTRACE_GET_SYSCALL_INFO, tid, sizeof info, &info) <= 0)
        return;
    if (info.op == PTRACE_SYSCALL_INFO_EXIT) {
        if (k->call && t->started)
            traced_call_record(&t->view, k->call, k->flags,
                               info.exit.is_error ? (int)-info.exit.rval : 0, k->path);
        k->call = NULL;
    } else if (info.op == PTRACE_SYSCALL_INFO_ENTRY && info.arch == OWN_ARCH && t->started) {
        uint64_t args[6];
        for (int i = 0; i < 6; i++)
            args[i] = info.entry.args[i];
        k->call = traced_call_of(info.entry.nr);
        if (k->call && traced_call_path(k->call, tid, args, k->path) < 0)
            k->call = NULL;
        k->flags = k->call && k->call->flags >= 0 ? args[k->call->flags] : 0;
    }
}

static int is_stop(int signum)
{
    return signum == SIGSTOP || signum == SIGTSTP || signum == SIGTTIN || signum == SIGTTOU;
}

/* Deals with a stop and lets the task go on. */
static void on_stop(struct tracer *t, pid_t tid, int status)
{
    int signum = WSTOPSIG(status), event = status >> 16, pass = 0, how = PTRACE_SYSCALL;
    if (signum == (SIGTRAP | 0x80)) {
        on_call(t, tid);
    } else if (event == PTRACE_EVENT_EXEC) {
        if (tid == t->program && !t->started)
            begin(t);
        else if (records_itself(tid))
            how = PTRACE_DETACH;
    } else if (event == PTRACE_EVENT_STOP && is_stop(signum)) {
        how = PTRACE_LISTEN;
    } else if (!event) {
        pass = signum;
    }
    if (how == PTRACE_DETACH)
        forget(t, tid);
    trace(how, tid, 0, (void *)(intptr_t)pass);
}

static void watch(struct tracer *t)
{
    int status;
    for (;;) {
        pid_t tid = waitpid(-1, &status, __WALL);
        if (tid < 0 && errno == EINTR)
            continue;
        if (tid < 0)
            return; /* nobody is left */
        if (WIFSTOPPED(status))
            on_stop(t, tid, status);
        else
            forget(t, tid);
    }
}

/* Lets go of all that is the program's: its streams, descriptors, terminal, working directory. */
static void stand_apart(int keep)
{
    setsid();
    int null = sys_open("/dev/null", O_RDWR | O_CLOEXEC, 0);
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    long most = sysconf(_SC_OPEN_MAX);
    for (int fd = 3; fd < (most < 65536 ? most : 65536); fd++)
        if (fd != keep)
            close(fd);
    if (chdir("/") != 0)
        return;
    for (int signum = 1; signum < NSIG; signum++)
        if (signum != SIGCHLD)
            signal(signum, SIG_IGN); /* it ends with the program, not before */
}

static void run_tracer(struct tracer *t, const char *folder, int ready)
{
    uint64_t start_ns = 0;
    int status;
    const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                         PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC;
    stand_apart(ready);
    record_start_wrapper(&t->view, folder, &start_ns);
    if (!start_ns || trace(PTRACE_SEIZE, t->program, 0, (void *)options) != 0 ||
        trace(PTRACE_INTERRUPT, t->program, 0, NULL) != 0 ||
        waitpid(t->program, &status, __WALL) != t->program)
        _exit(1);
    trace(PTRACE_SYSCALL, t->program, 0, NULL);
    if (write(ready, "r", 1) != 1)
        _exit(1);
    close(ready);
    watch(t);
    record_end(&t->view, -1);
    _exit(0);
}

void trace_start(const char *folder, int32_t rank)
{
    static struct tracer t;
    int gate[2];
    char byte;
    if (pipe2(gate, O_CLOEXEC) != 0)
        return;
    t.program = getpid();
    t.parent = getppid();
    t.rank = rank;
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    pid_t between = fork();
    if (between == 0) {
        close(gate[0]);
        if (fork() == 0)
            run_tracer(&t, folder, gate[1]);
        _exit(0);
    }
    close(gate[1]);
    while (between > 0 && waitpid(between, NULL, 0) < 0 && errno == EINTR)
        ;
    while (between > 0 && read(gate[0], &byte, 1) < 0 && errno == EINTR)
        ;
    close(gate[0]);
    prctl(PR_SET_PTRACER, 0);
}
#endif
