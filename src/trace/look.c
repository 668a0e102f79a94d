/* Paths of a call. See look.h. */
#include "trace/look.h"
#include "trace/remote.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SPARE = 8 /* descriptors: one at a time is used */
};

static char environment[2 << 20];
static size_t environment_bytes;

/* /proc/TID of a task, kept open: its links are asked for all the time. -1 where there are more
 * tasks than descriptors; a few of these are left for all else that is read. */
static int folder_of(struct trace_task *task)
{
    char path[32];
    if (task->folder < 0) {
        snprintf(path, sizeof path, "/proc/%d", (int)task->tid);
        int folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        long most = sysconf(_SC_OPEN_MAX);
        if (most < 0 || folder < most - SPARE)
            task->folder = folder;
        else
            close(folder);
    }
    return task->folder;
}

/* Whether a call may be about the working folder itself, asked by an empty path. */
static int may_be_empty(const struct trace_task *task)
{
    enum trace_call_id id = task->call->id;
    return (id == TRACE_newfstatat || id == TRACE_statx) &&
           (task->args[task->call->flags] & AT_EMPTY_PATH);
}

/* Makes `out` the absolute path that arguments `fd` and `path` mean; returns whether only the
 * descriptor means it. An empty path is none, unless a descriptor stands beside it. */
static int resolve(struct trace_task *task, int fd, int path, char *out)
{
    char given[PATH_MAX];
    long n = 0;
    int from = fd < 0 ? AT_FDCWD : (int)task->args[fd];
    *out = '\0';
    if (path >= 0 && task->args[path]) {
        n = remote_string(task->tid, task->args[path], given, sizeof given);
        task->unread |= n < 0;
        if (n < 0 || (n == 0 && from == AT_FDCWD && !may_be_empty(task)))
            return 0;
        if (n > 0 && given[0] == '/') {
            memcpy(out, given, (size_t)n + 1);
            return 0;
        }
    }
    if (fd < 0 && n == 0)
        return 0;
    long base = remote_link(task->tid, folder_of(task), from, out, PATH_MAX);
    if (base < 0 || (n > 0 && remote_join(out, (size_t)base, given, (size_t)n, 2 * PATH_MAX) < 0)) {
        *out = '\0';
        task->unread = 1;
    }
    return n == 0;
}

void trace_look_entry(struct trace_task *task)
{
    const struct trace_call *call = task->call;
    task->unread = 0;
    task->by_fd = resolve(task, call->fd, call->path, task->path);
    task->flags = call->flags >= 0 ? task->args[call->flags] : 0;
    task->other[0] = '\0';
    if (call->id == TRACE_mmap)
        return;
    if (call->id == TRACE_openat2) {
        uint64_t how = 0;
        remote_read(task->tid, task->args[call->flags], &how, sizeof how);
        task->flags = how;
    }
    if (call->flags >= 0)
        task->flags = (uint32_t)task->flags;
    if (call->other_fd >= 0)
        resolve(task, call->other_fd, call->other, task->other);
    else if (call->id == TRACE_symlinkat
#ifdef SYS_symlink
             || call->id == TRACE_symlink
#endif
    ) {
        if (remote_string(task->tid, task->args[call->other], task->other, PATH_MAX) < 0)
            task->other[0] = '\0';
    }
#ifdef SYS_rename
    else if (call->id == TRACE_rename || call->id == TRACE_link)
        resolve(task, -1, call->other, task->other);
#endif
}

void trace_look_exit(struct trace_task *task, int error, int64_t result)
{
    int links = task->call->id == TRACE_readlinkat;
#ifdef SYS_readlink
    links |= task->call->id == TRACE_readlink;
#endif
    if (!links || error || result < 0 || result >= PATH_MAX)
        return;
    long n = remote_read(task->tid, task->args[task->call->other], task->other, (size_t)result);
    task->other[n > 0 ? n : 0] = '\0';
}

int32_t trace_look_rank(pid_t tid, int32_t otherwise)
{
    static const char *const names[] = {
        "BRIGADE_RANK=", "PMIX_RANK=", "PMI_RANK=", "SLURM_PROCID=", "OMPI_COMM_WORLD_RANK="};
    long n = remote_file(tid, "environ", environment, sizeof environment);
    environment_bytes = n > 0 ? (size_t)n : 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t at = 0; at < environment_bytes; at += strlen(environment + at) + 1) {
            size_t length = strlen(names[i]);
            const char *value = environment + at + length;
            char *end;
            if (strncmp(environment + at, names[i], length) != 0 || *value < '0' || *value > '9')
                continue;
            long rank = strtol(value, &end, 10);
            if (*end == '\0' && rank <= INT32_MAX)
                return (int32_t)rank;
        }
    return otherwise;
}

const char *trace_look_environment(size_t *bytes)
{
    *bytes = environment_bytes;
    return environment;
}
