/* Writing the trace's file. See file.h.
 *
 * Lines go to a buffer; it reaches the file when it is full, ten times a second, and before the
 * traced program's end is known to anybody else. Whatever happens, whole lines are there. */
#include "trace/file.h"
#include "trace/look.h"
#include "trace/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

enum {
    LINE = 64 << 10, /* of the buffer: more than a line of a call takes */
    ARGUMENTS = 256 << 10
};

static const char *const searching[] = {
    "LD_LIBRARY_PATH=",
    "LD_PRELOAD=",
    "LD_AUDIT=",
    "GLIBC_TUNABLES=",
    "PATH=",
    "LANG=",
    "LC_",
    "LOCPATH=",
    "PYTHONPATH=",
    "PYTHONHOME=",
    "PYTHONSTARTUP=",
    "PYTHONUSERBASE=",
    "PYTHONNOUSERSITE=",
    "PYTHONDONTWRITEBYTECODE=",
    "PYTHONPYCACHEPREFIX=",
    "VIRTUAL_ENV=",
    "CONDA_PREFIX=",
};

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct trace_file *of(struct trace_sink *sink)
{
    return (struct trace_file *)(void *)sink;
}

/* --- The buffer -------------------------------------------------------------------------- */

/* No room for more. The last line loses its end, which tells that from a tracer that was killed;
 * its bytes are there already, and need no room. */
static void cut_off(struct trace_file *f)
{
    off_t n = lseek(f->fd, 0, SEEK_CUR);
    if (n > 0 && pwrite(f->fd, " ", 1, n - 1) != 1)
        n = 0; /* nobody can do more */
    close(f->fd);
    f->fd = -1;
}

static void write_out(struct trace_file *f)
{
    size_t done = 0;
    while (f->fd >= 0 && done < f->used) {
        ssize_t n = write(f->fd, f->buffer + done, f->used - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) { /* what is written stays, the program goes on */
            cut_off(f);
            break;
        }
        done += (size_t)n;
    }
    f->used = 0;
}

static void put_bytes(struct trace_file *f, const char *s, size_t n)
{
    while (n > 0) {
        size_t room = sizeof f->buffer - f->used, piece = n < room ? n : room;
        memcpy(f->buffer + f->used, s, piece);
        f->used += piece;
        s += piece;
        n -= piece;
        if (f->used == sizeof f->buffer)
            write_out(f);
    }
}

static void put(struct trace_file *f, const char *s)
{
    put_bytes(f, s, strlen(s));
}

/* A tab and a number. */
static void put_number(struct trace_file *f, int64_t value)
{
    char digits[24], *p = digits + sizeof digits;
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do
        *--p = (char)('0' + left % 10);
    while (left /= 10);
    if (value < 0)
        *--p = '-';
    *--p = '\t';
    put_bytes(f, p, (size_t)(digits + sizeof digits - p));
}

/* A tab and a string, in which a tab is \t, a line's end \n, and \ is \\. */
static void put_string(struct trace_file *f, const char *s)
{
    put_bytes(f, "\t", 1);
    for (;;) {
        size_t n = strcspn(s, "\t\n\\");
        put_bytes(f, s, n);
        s += n;
        if (*s == '\0')
            return;
        put_bytes(f, *s == '\t' ? "\\t" : *s == '\n' ? "\\n" : "\\\\", 2);
        s++;
    }
}

static void put_time(struct trace_file *f, uint64_t at_ns)
{
    put_number(f, at_ns > f->zero_ns ? (int64_t)(at_ns - f->zero_ns) : 0);
}

static void put_lost(struct trace_file *f, const char *sentence)
{
    put(f, "L");
    put_string(f, sentence);
    put(f, "\n");
}

/* --- The sink ---------------------------------------------------------------------------- */

/* What the node has mounted: the first program of a node leaves it. */
static void leave_mounts(const struct trace_file *f, const char *host, pid_t program)
{
    static char text[1 << 20];
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s.mountinfo", f->folder, host);
    long n = remote_file(program, "mountinfo", text, sizeof text);
    int fd = n > 0 ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644) : -1;
    if (fd >= 0 && write(fd, text, (size_t)n) != n)
        unlink(path);
    if (fd >= 0)
        close(fd);
}

static int open_file(struct trace_sink *sink, pid_t program)
{
    struct trace_file *f = of(sink);
    struct utsname host;
    char path[PATH_MAX];
    uint64_t start_ns = clock_ns(CLOCK_REALTIME);
    f->zero_ns = clock_ns(CLOCK_MONOTONIC);
    uname(&host);
    int n = snprintf(path, sizeof path, "%s/%s.%d.%llu.trace", f->folder, host.nodename,
                     (int)program, (unsigned long long)start_ns);
    f->fd = n < (int)sizeof path ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644) : -1;
    if (f->fd < 0)
        return errno ? -errno : -ENAMETOOLONG;
    leave_mounts(f, host.nodename, program);
    put(f, "brigade-trace\t1\nH");
    put_string(f, host.nodename);
    put_number(f, (int64_t)start_ns);
    return 0;
}

static void start(struct trace_sink *sink, enum trace_how how, int why)
{
    struct trace_file *f = of(sink);
    char text[300];
    put(f, how == TRACE_SECCOMP ? "\tseccomp\n" : how == TRACE_ALL ? "\tptrace\n" : "\tnone\n");
    write_out(f); /* a file without its head tells nothing, not even when it began */
    if (how != TRACE_NOT)
        return;
    const char *reason = why == EPERM    ? "another tracer has it (a debugger, strace), or the "
                                           "system forbids ptrace (kernel.yama.ptrace_scope, a "
                                           "container)"
                         : why == ENOSYS ? "the kernel is older than 5.3"
                                         : strerror(why);
    snprintf(text, sizeof text, "a program that could not be traced: %s", reason);
    put_lost(f, text);
}

/* The line that says what an exec made of a process. */
static void put_program(struct trace_file *f, const struct trace_image *image)
{
    static char arguments[ARGUMENTS];
    char folder[32], text[PATH_MAX];
    snprintf(folder, sizeof folder, "/proc/%d", (int)image->pid);
    int proc = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    put(f, "X");
    put_number(f, image->number);
    ssize_t n = readlinkat(proc, "exe", text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    put_string(f, text);
    n = readlinkat(proc, "cwd", text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    put_string(f, text);
    put(f, "\nA");
    put_number(f, image->number);
    long bytes = remote_file(image->pid, "cmdline", arguments, sizeof arguments);
    for (long at = 0; at < bytes; at += (long)strlen(arguments + at) + 1)
        put_string(f, arguments + at);
    put(f, "\n");
    close(proc);
}

static void put_environment(struct trace_file *f, const struct trace_image *image)
{
    size_t bytes;
    const char *environment = trace_look_environment(&bytes);
    put(f, "V");
    put_number(f, image->number);
    for (size_t at = 0; at < bytes; at += strlen(environment + at) + 1)
        for (size_t i = 0; i < sizeof searching / sizeof *searching; i++)
            if (strncmp(environment + at, searching[i], strlen(searching[i])) == 0)
                put_string(f, environment + at);
    put(f, "\n");
}

/* Programs that would have other rights than who started them do not get these while traced. What
 * such a program may let nobody look at is /proc/PID/exe, not the file. */
static void note_privilege(struct trace_file *f, const char *path)
{
    char text[2 * PATH_MAX + 100];
    struct stat st;
    if (geteuid() == 0 || !path || stat(path, &st) != 0)
        return;
    const char *by = st.st_mode & (S_ISUID | S_ISGID)                     ? "set-uid or set-gid bit"
                     : getxattr(path, "security.capability", NULL, 0) > 0 ? "file capabilities"
                                                                          : NULL;
    if (!by)
        return;
    snprintf(text, sizeof text, "the rights that %s has by its %s", path, by);
    put_lost(f, text);
}

static int begin(struct trace_sink *sink, const struct trace_image *image,
                 const struct trace_image *before, int by_exec)
{
    struct trace_file *f = of(sink);
    put(f, "P");
    put_number(f, image->number);
    put_number(f, image->pid);
    put_number(f, image->parent);
    if (image->rank < 0)
        put(f, "\t-");
    else
        put_number(f, image->rank);
    put_time(f, image->start_ns);
    if (before)
        put_number(f, before->number);
    else
        put(f, "\t-");
    put(f, "\n");
    if (by_exec) {
        put_program(f, image);
        put_environment(f, image);
        note_privilege(f, image->executed);
    }
    return 0;
}

static void event(struct trace_sink *sink, const struct trace_event *e)
{
    struct trace_file *f = of(sink);
    const struct trace_task *task = e->task;
    put(f, "E");
    put_number(f, e->image->number);
    put_number(f, task->tid);
    put_bytes(f, "\t", 1);
    put(f, task->call->name);
    put_time(f, task->at_ns);
    put_number(f, (int64_t)(e->end_ns - task->at_ns));
    put_number(f, e->error);
    put_number(f, e->result);
    put_number(f, task->by_fd);
    put_number(f, (int64_t)task->flags);
    put_string(f, task->path);
    f->unread += task->unread && e->error != EFAULT && e->error != EBADF &&
                 e->error != ENAMETOOLONG; /* nor could the kernel read those */
    if (task->other[0])
        put_string(f, task->other);
    put_bytes(f, "\n", 1);
    if (f->used > sizeof f->buffer - LINE)
        write_out(f);
}

static void entry(struct trace_sink *sink, const struct trace_image *image, uint64_t at_ns)
{
    struct trace_file *f = of(sink);
    put(f, "I");
    put_number(f, image->number);
    put_time(f, at_ns);
    put(f, "\n");
}

static void end(struct trace_sink *sink, const struct trace_image *image, uint64_t at_ns,
                int status)
{
    struct trace_file *f = of(sink);
    char text[100];
    f->blind += (unsigned)image->blind;
    if (image->foreign) {
        snprintf(text, sizeof text, "%llu calls in i386 or x32 mode",
                 (unsigned long long)image->foreign);
        put_lost(f, text);
    }
    if (image->rings) {
        snprintf(text, sizeof text, "what programs did through io_uring: %llu rings were asked for",
                 (unsigned long long)image->rings);
        put_lost(f, text);
    }
    put(f, "Q");
    put_number(f, image->number);
    put_time(f, at_ns);
    if (status == -1)
        put(f, "\t-");
    else
        put_number(f, WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status));
    put(f, "\n");
}

static void flush(struct trace_sink *sink, const struct trace_stops *stops, int last)
{
    struct trace_file *f = of(sink);
    char text[200];
    if (stops && (f->used || last)) {
        put(f, "S");
        put_number(f, (int64_t)stops->count);
        put_number(f, (int64_t)stops->held_ns);
        put(f, "\n");
    }
    if (last && f->unread) {
        snprintf(text, sizeof text, "the paths of %llu calls: their programs let nobody read them",
                 (unsigned long long)f->unread);
        put_lost(f, text);
    }
    if (last && f->blind) {
        snprintf(
            text, sizeof text,
            "when %llu programs had loaded their libraries: no breakpoint, SIGTRAP ignored, or "
            "started through ld.so itself",
            (unsigned long long)f->blind);
        put_lost(f, text);
    }
    if (last)
        put(f, "Z\n");
    write_out(f);
}

void trace_file_create(struct trace_file *file, const char *folder)
{
    file->sink = (struct trace_sink){open_file, start, begin, event, entry, end, flush};
    file->folder = folder;
    file->fd = -1;
    file->used = 0;
}
