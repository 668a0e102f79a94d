/* Starting programs: from node memory, and with the view kept in the child. */
#include "view/hooks.h"
#include "view/behind.h"
#include "view/exec.h"
#include "view/program.h"
#include "base/search.h"
#include "base/sys.h"
#include "base/text.h"

#include <alloca.h>
#include <stdarg.h>
#include <stdlib.h>

static int real_execve(const char *path, char *const argv[], char *const envp[])
{
    return REAL(execve)(path, argv, envp);
}

int hook_execve(const char *path, char *const argv[], char *const envp[])
{
    const struct view *v = hook_view();
    return v && path ? exec_path(v, path, argv, envp, real_execve) : REAL(execve)(path, argv, envp);
}

int hook_execv(const char *path, char *const argv[])
{
    return hook_execve(path, argv, environ);
}

int hook_execvpe(const char *file, char *const argv[], char *const envp[])
{
    const struct view *v = hook_view();
    return v && file ? exec_search(v, file, getenv("PATH"), argv, envp, real_execve)
                     : REAL(execvpe)(file, argv, envp);
}

int hook_execvp(const char *file, char *const argv[])
{
    return hook_execvpe(file, argv, environ);
}

/* The arguments of execl and its relatives, as an array on the caller's stack. */
#define COLLECT(args, argv, first)                     \
    size_t n_args = 1;                                 \
    va_start(args, first);                             \
    while (va_arg(args, char *))                       \
        n_args++;                                      \
    va_end(args);                                      \
    char **argv = alloca((n_args + 1) * sizeof *argv); \
    argv[0] = (char *)first;                           \
    va_start(args, first);                             \
    for (size_t i = 1; i <= n_args && first; i++)      \
    argv[i] = va_arg(args, char *)

int hook_execl(const char *path, const char *arg, ...)
{
    va_list args;
    COLLECT(args, argv, arg);
    va_end(args);
    return hook_execv(path, argv);
}

int hook_execlp(const char *file, const char *arg, ...)
{
    va_list args;
    COLLECT(args, argv, arg);
    va_end(args);
    return hook_execvp(file, argv);
}

int hook_execle(const char *path, const char *arg, ...)
{
    va_list args;
    COLLECT(args, argv, arg);
    char *const *envp = va_arg(args, char *const *);
    va_end(args);
    return hook_execve(path, argv, envp);
}

/* ---- by descriptor ---- */

/* Plans for `path` and puts the environment that the child needs in the place of `envp`,
 * on the caller's stack. */
#define PLAN(v, path, followed, envp, p)                                        \
    int plan_err = 0;                                                           \
    do {                                                                        \
        size_t n_env = exec_count(envp);                                        \
        struct program_env *e = alloca(sizeof *e);                              \
        if (n_env >= EXEC_MANY)                                                 \
            break;                                                              \
        plan_err = program_plan(v, path, followed, envp, p, e);                 \
        if (plan_err == 0 && (e->n_add || e->n_drop)) {                         \
            char **merged = alloca((n_env + PROGRAM_ENV + 1) * sizeof *merged); \
            program_env_merge(envp, e, merged, n_env + PROGRAM_ENV + 1);        \
            envp = merged;                                                      \
        }                                                                       \
    } while (0)

/* A path of the file that `fd` refers to. */
static const char *fd_name(int fd, char *buf, size_t size)
{
    struct text t = text_in(buf, size);
    text_add(&t, "/proc/self/fd/");
    text_number(&t, (uint64_t)fd, 10);
    return fd < 0 || t.full ? NULL : buf;
}

int hook_execveat(int dirfd, const char *path, char *const argv[], char *const envp[], int flags)
{
    struct program p = {.path = NULL};
    char name[PATH_MAX];
    const struct view *v = hook_view();
    if (v && path && path[0] && flags == 0 && (path[0] == '/' || dirfd == AT_FDCWD))
        return exec_path(v, path, argv, envp, real_execve);
    if (!v)
        return REAL(execveat)(dirfd, path, argv, envp, flags);
    const char *way = NULL;
    if (path && !path[0] && (flags & AT_EMPTY_PATH))
        way = fd_name(dirfd, name, sizeof name);
    else if (path && path[0] && view_absolute(v, dirfd, path, name, sizeof name) == 0)
        way = name;
    PLAN(v, way, way != NULL, envp, &p);
    (void)plan_err;
    return REAL(execveat)(dirfd, path, argv, envp, flags);
}

int hook_fexecve(int fd, char *const argv[], char *const envp[])
{
    struct program p = {.path = NULL};
    char name[64];
    const struct view *v = hook_view();
    if (!v)
        return REAL(fexecve)(fd, argv, envp);
    PLAN(v, fd_name(fd, name, sizeof name), fd >= 0, envp, &p);
    (void)plan_err;
    return REAL(fexecve)(fd, argv, envp);
}

/* ---- posix_spawn ---- */

int hook_posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                     const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
    struct program p = {.path = NULL};
    const struct view *v = hook_view();
    if (!v || !path)
        return REAL(posix_spawn)(pid, path, actions, attributes, argv, envp);
    /* a relative path counts from where the actions may have gone */
    int known = path[0] == '/' || v->mode == VIEW_RECORD;
    PLAN(v, path, known, envp, &p);
    char rank[PATH_MAX];
    if (plan_err == 0 && known && exec_is_behind(v, &p, path, argv, rank)) {
        char **args = alloca((exec_count(argv) + BEHIND_FRONT + 1) * sizeof *args);
        behind_arguments(path, argv, args);
        if (REAL(posix_spawn)(pid, rank, actions, attributes, args, envp) == 0)
            return 0;
    }
    if (plan_err == 0 && p.path) {
        size_t n = exec_count(argv), at = 0;
        char **args = alloca((n + PROGRAM_FRONT + 1) * sizeof *args);
        for (int i = 0; i < p.n_front; i++)
            args[at++] = (char *)p.front[i];
        for (size_t i = p.n_front ? 1 : 0; i < n; i++)
            args[at++] = argv[i];
        args[at] = NULL;
        int err = REAL(posix_spawn)(pid, p.path, actions, attributes, args, envp);
        if (err != ENOENT && err != EACCES)
            return err;
    }
    return REAL(posix_spawn)(pid, path, actions, attributes, argv, envp);
}

/* Whether the child's own search would take `path`. */
static int is_program(const struct view *v, const char *path)
{
    struct look_result r;
    if (v->mode == VIEW_RECORD) {
        int err = sys_access(path, X_OK);
        record_lookup(v, "exec", -err, AT_FDCWD, path, "");
    } else {
        switch (look_up(v, "exec", AT_FDCWD, path, 1, &r)) {
        case LOOK_HIT: look_hit(v); return r.entry->kind == BRG_FILE && look_permits(r.entry, X_OK);
        case LOOK_MISSING: look_hit(v); return 0;
        case LOOK_ELSEWHERE:
            look_hit(v);
            path = r.path;
            break;
        case LOOK_PASS: break;
        }
    }
    return search_is_program(path) == 0;
}

/* Where the child would find it if it stayed here. */
static int would_take_here(void *context, const char *path)
{
    return is_program(context, path) ? 0 : -ENOENT;
}

/* Relative candidates count from where the child will be: only it can try them. */
static int would_take(void *context, const char *path)
{
    return path[0] != '/' ? -EXDEV : would_take_here(context, path);
}

int hook_posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                      const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
    char path[PATH_MAX];
    const struct view *v = hook_view();
    if (!v || !file)
        return REAL(posix_spawnp)(pid, file, actions, attributes, argv, envp);
    if (text_base(file) != file)
        return hook_posix_spawn(pid, file, actions, attributes, argv, envp);
    int err = search_path(file, getenv("PATH"), path, would_take, (void *)v);
    if (err == 0)
        return hook_posix_spawn(pid, path, actions, attributes, argv, envp);
    if (err == -EXDEV)
        search_path(file, getenv("PATH"), path, would_take_here, (void *)v);
    struct program unknown = {.path = NULL};
    PLAN(v, err == -EXDEV ? path : NULL, 0, envp, &unknown);
    (void)plan_err;
    return REAL(posix_spawnp)(pid, file, actions, attributes, argv, envp);
}
