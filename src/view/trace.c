/* A traced trial: a sink of the tracer's that writes records. See trace.h. */
#include "view/trace.h"
#include "trace/engine.h"
#include "trace/remote.h"
#include "view/handoff.h"
#include "view/record.h"
#include "base/search.h"
#include "base/sys.h"
#include "base/text.h"
#include "view/trace_records.h"

#include <errno.h>

struct trial {
    struct trace_sink sink; /* first: the sink is the trial */
    struct view view;
    const char *folder;
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
        return inspect(file); /* what cannot be executed, executing it says */
    return search_program(file, path_list, path) < 0 ? BINARY_JOINS : inspect(path);
}

/* What a link in /proc of a process says. */
static void read_link(pid_t pid, const char *name, char *buf, size_t size)
{
    char path[64];
    struct text t = text_in(path, sizeof path);
    text_add(&t, "/proc/");
    text_number(&t, (uint64_t)pid, 10);
    text_add(&t, name);
    long n = sys_readlink(path, buf, size - 1);
    buf[n > 0 ? n : 0] = '\0';
}

/* The strings of a file in /proc of a process, joined as the record has arguments; how many. */
static int read_strings(pid_t pid, const char *name, char *buf, size_t size)
{
    long n = remote_file(pid, name, buf, size);
    int count = 0;
    if (n < 0)
        buf[0] = '\0';
    for (long i = 0; i < n; i++) {
        if (buf[i] != '\0')
            continue;
        buf[i] = i + 1 < n ? '\x1f' : '\0';
        count++;
    }
    return count;
}

/* The `process` and `argv` records of the program, once it runs. */
static void begin_program(struct trial *t, const struct trace_image *image)
{
    char parent[16], rank[16] = "", cwd[PATH_MAX], arguments[2 * PATH_MAX];
    struct text p = text_in(parent, sizeof parent), r = text_in(rank, sizeof rank);
    text_number(&p, (uint64_t)image->parent, 10);
    if (image->rank >= 0)
        text_signed(&r, image->rank);
    read_link(image->pid, "/exe", t->view.exe, sizeof t->view.exe);
    read_link(image->pid, "/cwd", cwd, sizeof cwd);
    int count = read_strings(image->pid, "cmdline", arguments, sizeof arguments);
    record_add(&t->view, "process", image->pid, parent, t->view.exe, rank);
    record_add(&t->view, "argv", count, "", cwd, arguments);
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
    read_strings(tid, "environ", environment, sizeof environment);
    return strstr(environment, BRG_AUDIT_NAME) != NULL;
}

static struct trial *of(struct trace_sink *sink)
{
    return (struct trial *)(void *)sink;
}

static int open_record(struct trace_sink *sink, pid_t program)
{
    uint64_t start_ns = 0;
    (void)program;
    record_start_wrapper(&of(sink)->view, of(sink)->folder, &start_ns);
    return start_ns ? 0 : -EIO;
}

static void start(struct trace_sink *sink, enum trace_how how, int why)
{
    (void)sink;
    (void)how;
    (void)why;
}

/* A child that our libraries reach records itself, and is let go. */
static int begin(struct trace_sink *sink, const struct trace_image *image,
                 const struct trace_image *before, int by_exec)
{
    if (before)
        return by_exec && records_itself(image->pid);
    begin_program(of(sink), image);
    return 0;
}

static void event(struct trace_sink *sink, const struct trace_event *e)
{
    trace_record(&of(sink)->view, e);
}

static void end(struct trace_sink *sink, const struct trace_image *image, uint64_t at_ns,
                int status)
{
    (void)sink;
    (void)image;
    (void)at_ns;
    (void)status;
}

/* Records are written through; the last one says that nothing follows. */
static void flush(struct trace_sink *sink, const struct trace_stops *stops, int last)
{
    if (stops && last)
        record_end(&of(sink)->view, -1);
}

void trace_trial(const char *folder, int32_t rank)
{
    static struct trial trial;
    trial.sink = (struct trace_sink){open_record, start, begin, event, NULL, end, flush};
    trial.folder = folder;
    trace_start(&trial.sink, TRACE_ALL, rank);
}
