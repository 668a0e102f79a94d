/* Executing programs. See exec.h. */
#include "view/exec.h"
#include "view/behind.h"
#include "view/binary.h"
#include "view/record.h"
#include "base/search.h"
#include "base/sys.h"

#include <alloca.h>
#include <elf.h>
#include <errno.h>
#include <paths.h>
#include <string.h>

size_t exec_count(char *const strings[])
{
    size_t n = 0;
    while (strings && strings[n])
        n++;
    return n;
}

/* Executes the resolved program; returns only on failure. */
static int exec_resolved(const struct program *p, char *const argv[], char *const envp[],
                         exec_call *call)
{
    size_t n = exec_count(argv), at = 0;
    if (p->n_front == 0)
        return call(p->path, argv, envp);
    if (n > EXEC_MANY) {
        errno = ENOENT;
        return -1;
    }
    char **args = alloca((n + (size_t)p->n_front + 1) * sizeof *args);
    for (int i = 0; i < p->n_front; i++)
        args[at++] = (char *)p->front[i];
    for (size_t i = 1; i < n; i++)
        args[at++] = argv[i];
    args[at] = NULL;
    return call(p->path, args, envp);
}

/* Whether the kernel will execute the file, and a script's interpreter: brigade-rank could not say
 * in time that it does not. */
static int can_be_executed(const char *path)
{
    char head[BINARY_HEAD];
    const char *interpreter, *argument;
    int fd = search_is_program(path) == 0 ? sys_open(path, O_RDONLY | O_CLOEXEC, 0) : -1;
    long n = fd < 0 ? 0 : sys_read(fd, head, sizeof head - 1);
    if (fd >= 0)
        sys_close(fd);
    if (n < SELFMAG)
        return 0;
    head[n] = '\0';
    return memcmp(head, ELFMAG, SELFMAG) == 0 ||
           (program_of_script(head, &interpreter, &argument) &&
            search_is_program(interpreter) == 0);
}

int exec_is_behind(const struct view *v, const struct program *p, const char *path,
                   char *const argv[], char rank[PATH_MAX])
{
    return !p->alone && behind_is_near(v, p->path, path, argv, rank) &&
           (p->path || can_be_executed(path));
}

/* brigade-rank, in front of what may be the program behind this wrapper; it executes what is not.
 * Returns only on failure. */
static void exec_behind(const char *rank, const char *path, char *const argv[], char *const envp[],
                        exec_call *call)
{
    size_t n = exec_count(argv);
    if (n > EXEC_MANY)
        return;
    char **args = alloca((n + BEHIND_FRONT + 1) * sizeof *args);
    behind_arguments(path, argv, args);
    call(rank, args, envp);
}

int exec_path(const struct view *v, const char *path, char *const argv[], char *const envp[],
              exec_call *call)
{
    struct program p;
    struct program_env e;
    char rank[PATH_MAX];
    size_t n = exec_count(envp);
    if (v->mode == VIEW_OFF || n >= EXEC_MANY)
        return call(path, argv, envp);
    int err = program_plan(v, path, 1, envp, &p, &e);
    if (err < 0) {
        errno = -err;
        return -1;
    }
    if (e.n_add || e.n_drop) {
        size_t room = n + (size_t)e.n_add + 1;
        char **merged = alloca(room * sizeof *merged);
        program_env_merge(envp, &e, merged, room);
        envp = merged;
    }
    if (v->mode == VIEW_RECORD)
        record_flush(v);
    if (exec_is_behind(v, &p, path, argv, rank))
        exec_behind(rank, path, argv, envp, call);
    if (p.path) {
        exec_resolved(&p, argv, envp, call);
        if (errno == E2BIG || errno == ENOEXEC)
            return -1;
    }
    return call(path, argv, envp); /* also when the staged copy would not start */
}

/* As exec_path; a file without a format the kernel knows is a script for the shell. */
static int exec_or_shell(const struct view *v, const char *path, char *const argv[],
                         char *const envp[], exec_call *call)
{
    size_t n = exec_count(argv);
    exec_path(v, path, argv, envp, call);
    if (errno != ENOEXEC || n > EXEC_MANY)
        return -1;
    char **args = alloca((n + 3) * sizeof *args);
    args[0] = (char *)_PATH_BSHELL;
    args[1] = (char *)path;
    for (size_t i = 1; i < n; i++)
        args[i + 1] = argv[i];
    args[n > 1 ? n + 1 : 2] = NULL;
    return exec_path(v, _PATH_BSHELL, args, envp, call);
}

struct attempt {
    const struct view *v;
    char *const *argv, *const *envp;
    exec_call *call;
};

static int attempt(void *context, const char *path)
{
    const struct attempt *a = context;
    exec_or_shell(a->v, path, a->argv, a->envp, a->call);
    return -errno;
}

int exec_search(const struct view *v, const char *file, const char *path_list, char *const argv[],
                char *const envp[], exec_call *call)
{
    char path[PATH_MAX];
    struct attempt a = {v, argv, envp, call};
    errno = -search_path(file, path_list, path, attempt, &a);
    return -1;
}
