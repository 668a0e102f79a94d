/* Which system calls are look-ups, and where their paths are. See trace_calls.h. */
#include "view/trace_calls.h"
#include "view/record.h"
#include "view/sys.h"
#include "view/text.h"

#include <errno.h>
#include <sys/uio.h>

enum {
    NO_FD = -1
};

static const struct traced_call calls[] = {
#ifdef SYS_open
    {SYS_open, TRACED_OPEN, "open", NO_FD, 0, 1},
    {SYS_creat, TRACED_WRITE, "open", NO_FD, 0, NO_FD},
    {SYS_stat, TRACED_LOOKUP, "stat", NO_FD, 0, NO_FD},
    {SYS_lstat, TRACED_LOOKUP, "lstat", NO_FD, 0, NO_FD},
    {SYS_access, TRACED_ACCESS, "access", NO_FD, 0, 1},
    {SYS_readlink, TRACED_LOOKUP, "readlink", NO_FD, 0, NO_FD},
    {SYS_mkdir, TRACED_WRITE, "mkdir", NO_FD, 0, NO_FD},
    {SYS_rmdir, TRACED_WRITE, "rmdir", NO_FD, 0, NO_FD},
    {SYS_unlink, TRACED_WRITE, "unlink", NO_FD, 0, NO_FD},
    {SYS_rename, TRACED_WRITE, "rename", NO_FD, 1, NO_FD},
    {SYS_symlink, TRACED_WRITE, "symlink", NO_FD, 1, NO_FD},
    {SYS_link, TRACED_WRITE, "link", NO_FD, 1, NO_FD},
#endif
    {SYS_openat, TRACED_OPEN, "open", 0, 1, 2},
    {SYS_newfstatat, TRACED_STAT, "stat", 0, 1, 3},
    {SYS_statx, TRACED_STAT, "stat", 0, 1, 2},
    {SYS_faccessat, TRACED_ACCESS, "access", 0, 1, 2},
#ifdef SYS_faccessat2
    {SYS_faccessat2, TRACED_ACCESS, "access", 0, 1, 2},
#endif
    {SYS_readlinkat, TRACED_LOOKUP, "readlink", 0, 1, NO_FD},
    {SYS_getdents64, TRACED_LIST, "list", 0, NO_FD, NO_FD},
    {SYS_execve, TRACED_LOOKUP, "exec", NO_FD, 0, NO_FD},
    {SYS_execveat, TRACED_LOOKUP, "exec", 0, 1, NO_FD},
    {SYS_truncate, TRACED_WRITE, "truncate", NO_FD, 0, NO_FD},
    {SYS_mkdirat, TRACED_WRITE, "mkdir", 0, 1, NO_FD},
    {SYS_unlinkat, TRACED_WRITE, "unlink", 0, 1, NO_FD},
#ifdef SYS_renameat
    {SYS_renameat, TRACED_WRITE, "rename", 2, 3, NO_FD},
#endif
    {SYS_renameat2, TRACED_WRITE, "rename", 2, 3, NO_FD},
    {SYS_symlinkat, TRACED_WRITE, "symlink", 1, 2, NO_FD},
    {SYS_linkat, TRACED_WRITE, "link", 2, 3, NO_FD},
};

const struct traced_call *traced_call_of(uint64_t nr)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (calls[i].nr == nr)
            return &calls[i];
    return NULL;
}

/* A string of another process; its length, or -errno. Read in pages, as more may not be mapped. */
static long read_string(int pid, uint64_t at, char *buf, size_t size)
{
    size_t n = 0;
    while (n < size) {
        size_t piece = 4096 - (size_t)((at + n) % 4096);
        piece = piece < size - n ? piece : size - n;
        struct iovec to = {buf + n, piece}, from = {(void *)(uintptr_t)(at + n), piece};
        long got = process_vm_readv(pid, &to, 1, &from, 1, 0);
        if (got <= 0)
            return -EFAULT;
        char *end = memchr(buf + n, '\0', (size_t)got);
        if (end)
            return end - buf;
        n += (size_t)got;
    }
    return -ENAMETOOLONG;
}

/* What a link in /proc of a process leads to; its length, or -errno. */
static long follow(int pid, int fd, char *buf, size_t size)
{
    char name[64];
    struct text t = text_in(name, sizeof name);
    text_add(&t, "/proc/");
    text_number(&t, (uint64_t)pid, 10);
    text_add(&t, fd == AT_FDCWD ? "/cwd" : "/fd/");
    if (fd != AT_FDCWD)
        text_number(&t, (uint64_t)(unsigned)fd, 10);
    long n = sys_readlink(name, buf, size - 1);
    if (n < 0)
        return n;
    buf[n] = '\0';
    return buf[0] == '/' ? n : -ENOENT;
}

int traced_call_path(const struct traced_call *call, int pid, const uint64_t *args, char *buf)
{
    char given[PATH_MAX] = "";
    int fd = call->fd == NO_FD ? AT_FDCWD : (int)args[call->fd];
    long n = call->path == NO_FD ? 0 : read_string(pid, args[call->path], given, sizeof given);
    if (n < 0 || (call->path != NO_FD && n == 0))
        return n < 0 ? (int)n : -ENOENT; /* "" means the descriptor itself: no look-up */
    if (given[0] == '/') {
        memcpy(buf, given, (size_t)n + 1);
        return 0;
    }
    n = follow(pid, fd, buf, PATH_MAX);
    if (n < 0)
        return (int)n;
    struct text t = {buf, (size_t)n, PATH_MAX, 0};
    text_add(&t, given[0] && n > 1 ? "/" : "");
    text_add(&t, given);
    return t.full ? -ENAMETOOLONG : 0;
}

void traced_call_record(const struct view *v, const struct traced_call *call, uint64_t flags,
                        int err, const char *path)
{
    char extra[24] = "";
    struct text t = text_in(extra, sizeof extra);
    const char *kind = call->name;
    switch (call->how) {
    case TRACED_OPEN:
        if ((flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC))) {
            record_lookup(v, "write", err, AT_FDCWD, path, "open");
            return;
        }
        text_number(&t, (unsigned)flags, 8);
        break;
    case TRACED_ACCESS: text_signed(&t, (int)flags); break;
    case TRACED_STAT: kind = flags & AT_SYMLINK_NOFOLLOW ? "lstat" : "stat"; break;
    case TRACED_WRITE: record_lookup(v, "write", err, AT_FDCWD, path, call->name); return;
    case TRACED_LOOKUP:
    case TRACED_LIST: break;
    }
    record_lookup(v, kind, err, AT_FDCWD, path, extra);
}
