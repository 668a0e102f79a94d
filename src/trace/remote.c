/* Asking a stopped task. See remote.h. */
#include "trace/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    PAGE = 4096, /* the smallest: what may be mapped by itself */
    PIECE = 256  /* most paths are shorter */
};

/* A word at a time, where the kernel or a container has no process_vm_readv. */
static long peek(pid_t tid, uint64_t at, char *buf, size_t n)
{
    size_t done = 0;
    while (done < n) {
        uint64_t from = (at + done) & ~(uint64_t)7;
        unsigned long word = 0;
        if (syscall(SYS_ptrace, PTRACE_PEEKDATA, tid, from, &word) != 0)
            break;
        size_t skip = (size_t)(at + done - from), piece = sizeof word - skip;
        piece = piece < n - done ? piece : n - done;
        memcpy(buf + done, (char *)&word + skip, piece);
        done += piece;
    }
    return done ? (long)done : -EFAULT;
}

long remote_read(pid_t tid, uint64_t at, void *buf, size_t n)
{
    struct iovec to = {buf, n}, from = {(void *)(uintptr_t)at, n};
    long got = process_vm_readv(tid, &to, 1, &from, 1, 0);
    return got > 0 ? got : peek(tid, at, buf, n);
}

long remote_string(pid_t tid, uint64_t at, char *buf, size_t size)
{
    size_t n = 0, piece = PIECE;
    while (n < size) {
        size_t whole = PAGE - (size_t)((at + n) % PAGE);
        size_t want = piece < whole ? piece : whole;
        want = want < size - n ? want : size - n;
        long got = remote_read(tid, at + n, buf + n, want);
        if (got <= 0)
            return -EFAULT;
        char *end = memchr(buf + n, '\0', (size_t)got);
        if (end)
            return end - buf;
        n += (size_t)got;
        piece = PAGE;
    }
    return -ENAMETOOLONG;
}

/* Cuts what the kernel adds to names of removed files. Memory that has a descriptor is no file. */
static long tidy(char *path, size_t n)
{
    static const char removed[] = " (deleted)", memory[] = "/memfd:";
    const size_t tail = sizeof removed - 1;
    if (n > tail && strcmp(path + n - tail, removed) == 0)
        path[n -= tail] = '\0';
    if (strncmp(path, memory, sizeof memory - 1) == 0)
        memmove(path, path + 1, n--);
    return (long)n;
}

long remote_link(pid_t tid, int folder, int fd, char *buf, size_t size)
{
    char name[48];
    int n_base = folder < 0 ? snprintf(name, sizeof name, "/proc/%d/", (int)tid) : 0;
    if (fd == AT_FDCWD)
        snprintf(name + n_base, sizeof name - (size_t)n_base, "cwd");
    else
        snprintf(name + n_base, sizeof name - (size_t)n_base, "fd/%u", (unsigned)fd);
    long n = readlinkat(folder, name, buf, size - 1);
    if (n < 0)
        return -errno;
    buf[n] = '\0';
    return tidy(buf, (size_t)n);
}

long remote_file(pid_t tid, const char *name, char *buf, size_t size)
{
    char path[64];
    size_t done = 0;
    snprintf(path, sizeof path, "/proc/%d/%s", (int)tid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    while (done < size - 1) {
        ssize_t n = read(fd, buf + done, size - 1 - done);
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    close(fd);
    buf[done] = '\0';
    return (long)done;
}

long long remote_status(const char *status, const char *name, int base)
{
    size_t n = strlen(name);
    for (const char *line = status; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, n) == 0 && line[n] == ':')
            return (long long)strtoull(line + n + 1, NULL, base);
    }
    return -1;
}

long remote_join(char *path, size_t n_base, const char *given, size_t n_given, size_t size)
{
    size_t slash = n_given && n_base && path[n_base - 1] != '/';
    if (n_base + slash + n_given >= size)
        return -ENAMETOOLONG;
    if (slash)
        path[n_base] = '/';
    memcpy(path + n_base + slash, given, n_given);
    path[n_base + slash + n_given] = '\0';
    return (long)(n_base + slash + n_given);
}
