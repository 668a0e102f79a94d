/* Processes that begin, end, or become another program. */
#include "buffer/hooks.h"
#include "buffer/worker.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

/* A child has ended, or was waited for: it may have written what was read ahead. */
static void child_ended(void)
{
    __atomic_add_fetch(&epoch, 1, __ATOMIC_ACQ_REL);
}

pid_t hook__Fork(void) /* runs no handlers of pthread_atfork */
{
    file_fork_begin();
    pid_t pid = REAL(_Fork)();
    file_fork_end(pid == 0);
    return pid;
}

/* A process by clone begins in `start`, not here: so its files are left before, as by fork. */
int hook_clone(int (*start)(void *), void *stack, int flags, void *argument, ...)
{
    va_list list;
    va_start(list, argument);
    pid_t *parent = va_arg(list, pid_t *);
    void *tls = va_arg(list, void *);
    pid_t *child = va_arg(list, pid_t *);
    va_end(list);
    if (!(flags & CLONE_THREAD))
        file_drop_all("clone: parent and child share the position", 0);
    return REAL(clone)(start, stack, flags, argument, parent, tls, child);
}

/* A new program goes on where the old one is; its descriptors are the old one's. */
static void before_exec(void)
{
    file_hand_over();
}

int hook_execve(const char *path, char *const argv[], char *const envp[])
{
    before_exec();
    return REAL(execve)(path, argv, envp);
}
int hook_execv(const char *path, char *const argv[])
{
    before_exec();
    return REAL(execv)(path, argv);
}
int hook_execvp(const char *file, char *const argv[])
{
    before_exec();
    return REAL(execvp)(file, argv);
}
int hook_execvpe(const char *file, char *const argv[], char *const envp[])
{
    before_exec();
    return REAL(execvpe)(file, argv, envp);
}
int hook_execveat(int dirfd, const char *path, char *const argv[], char *const envp[], int flags)
{
    before_exec();
    return REAL(execveat)(dirfd, path, argv, envp, flags);
}
int hook_fexecve(int fd, char *const argv[], char *const envp[])
{
    before_exec();
    return REAL(fexecve)(fd, argv, envp);
}

#define WORDS_MOST 4096
/* Calls `act` with the words of a variable list as argv[]; envp behind them where it has one. */
#define WITH_LIST(act)                                                         \
    va_list list;                                                              \
    int n = 1;                                                                 \
    va_start(list, arg);                                                       \
    for (const char *word = arg; word; n++)                                    \
        word = va_arg(list, const char *);                                     \
    va_end(list);                                                              \
    if (n > WORDS_MOST) {                                                      \
        errno = E2BIG;                                                         \
        return -1;                                                             \
    }                                                                          \
    char *argv[n + 1];                                                         \
    va_start(list, arg);                                                       \
    argv[0] = (char *)arg;                                                     \
    for (int i = 1; i < n && argv[i - 1]; i++)                                 \
        argv[i] = va_arg(list, char *);                                        \
    char *const *envp = with_environment ? va_arg(list, char *const *) : NULL; \
    va_end(list);                                                              \
    (void)envp;                                                                \
    return act

int hook_execl(const char *path, const char *arg, ...)
{
    const int with_environment = 0;
    WITH_LIST(hook_execv(path, argv));
}
int hook_execlp(const char *file, const char *arg, ...)
{
    const int with_environment = 0;
    WITH_LIST(hook_execvp(file, argv));
}
int hook_execle(const char *path, const char *arg, ...)
{
    const int with_environment = 1;
    WITH_LIST(hook_execve(path, argv, envp));
}

int hook_posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                     const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
    file_drop_all("given to another program", actions == NULL);
    return REAL(posix_spawn)(pid, path, actions, attributes, argv, envp);
}
int hook_posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                      const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
    file_drop_all("given to another program", actions == NULL);
    return REAL(posix_spawnp)(pid, file, actions, attributes, argv, envp);
}

int hook_system(const char *command)
{
    file_drop_all("given to another program", 1);
    int rc = REAL(system)(command);
    child_ended();
    return rc;
}
FILE *hook_popen(const char *command, const char *mode)
{
    file_drop_all("given to another program", 1);
    return REAL(popen)(command, mode);
}
int hook_pclose(FILE *stream)
{
    int rc = REAL(pclose)(stream);
    child_ended();
    return rc;
}

pid_t hook_wait(int *status)
{
    pid_t pid = REAL(wait)(status);
    child_ended();
    return pid;
}
pid_t hook_waitpid(pid_t pid, int *status, int options)
{
    pid = REAL(waitpid)(pid, status, options);
    child_ended();
    return pid;
}
pid_t hook_wait3(int *status, int options, struct rusage *usage)
{
    pid_t pid = REAL(wait3)(status, options, usage);
    child_ended();
    return pid;
}
pid_t hook_wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
    pid = REAL(wait4)(pid, status, options, usage);
    child_ended();
    return pid;
}
int hook_waitid(idtype_t kind, id_t id, siginfo_t *info, int options)
{
    int rc = REAL(waitid)(kind, id, info, options);
    child_ended();
    return rc;
}

/* What comes after this, of another thread or a handler, goes to the kernel directly. */
static void before_end(void)
{
    if (file_in_vforked_child())
        return;
    file_end();
    report_write();
}

void hook__exit(int status)
{
    before_end();
    REAL(_exit)(status);
    __builtin_unreachable();
}
void hook_pthread_exit(void *result)
{
    file_drain_all(0);
    worker_end_soon(); /* this may be the program's last thread: then ours must not keep it alive */
    REAL(pthread_exit)(result);
    __builtin_unreachable();
}
void hook_abort(void)
{
    file_drain_all(0);
    REAL(abort)();
    __builtin_unreachable();
}
void hook_quick_exit(int status)
{
    before_end();
    REAL(quick_exit)(status);
    __builtin_unreachable();
}

/* vfork cannot be wrapped in C: it returns twice into the caller's frame. So what must be done
 * before is done, then the real one is jumped to as if the caller had called it. All files are
 * left, as by fork: a child may give on, or use, also those that exec closes. */
void *vfork_begin(void);
void *vfork_begin(void)
{
    int saved = errno;
    file_drop_all("vfork: parent and child share the position", 0);
    file_vforked();
    errno = saved;
    return real_find("vfork");
}
#if defined(__x86_64__)
__asm__(".pushsection .text\n"
        ".globl vfork\n.type vfork, @function\nvfork:\n"
        "  subq $8, %rsp\n  call vfork_begin\n  addq $8, %rsp\n  jmp *%rax\n"
        ".size vfork, .-vfork\n"
        ".globl __vfork\n.set __vfork, vfork\n.popsection\n");
#elif defined(__aarch64__)
__asm__(".pushsection .text\n"
        ".globl vfork\n.type vfork, %function\nvfork:\n"
        "  stp x29, x30, [sp, #-16]!\n  bl vfork_begin\n  ldp x29, x30, [sp], #16\n"
        "  mov x16, x0\n  br x16\n"
        ".size vfork, .-vfork\n"
        ".globl __vfork\n.set __vfork, vfork\n.popsection\n");
#endif

#define BRG_SECTION_PROCESS
#define BRG_ALIAS BRG_DEFINE_ALIAS
#include "buffer/hooks.def"
