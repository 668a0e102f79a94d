/* The tracer: sees the calls of a program and of all that comes from it, and tells a sink.
 *
 * The program that is to be traced calls trace_start and executes itself what it will be: its
 * process number, parent, streams, terminal and signals stay its own. The tracer is nobody's child
 * that the program could wait for, holds none of its descriptors, and ends with the last process.
 *
 * Two ways to stop: at calls of the table only, by a seccomp filter that the program puts on itself
 * (filter.h), or at every call. With the filter the program dies with its tracer (SIGKILL): without
 * a tracer its calls would fail with ENOSYS, and its answers be wrong. Without the filter it goes
 * on.
 *
 * What must stay true: whatever is refused, the program runs. */
#ifndef BRG_TRACE_ENGINE_H
#define BRG_TRACE_ENGINE_H

#include "trace/task.h"

#include <stdint.h>
#include <sys/types.h>

enum trace_how {
    TRACE_NOT,     /* the program runs untraced */
    TRACE_SECCOMP, /* it stops at calls of the table */
    TRACE_ALL      /* it stops at every call */
};

/* A call that has ended. */
struct trace_event {
    const struct trace_task *task; /* in which its call, path, other, flags, by_fd, at_ns are */
    const struct trace_image *image;
    uint64_t end_ns;
    int error;      /* errno, 0: it worked */
    int64_t result; /* -1 on error */
};

struct trace_stops {
    uint64_t count, held_ns; /* from the tracer's waking up until it let the task go on */
};

/* Who is told, in the tracer. `self` is the sink itself. `entry` may be NULL. */
struct trace_sink {
    /* Makes what will be written to. Returns 0, or -errno: then nothing is traced. */
    int (*open)(struct trace_sink *self, pid_t program);
    /* How the program is traced from here on; of TRACE_NOT the errno that says why. */
    void (*start)(struct trace_sink *self, enum trace_how how, int why);
    /* A process has begun. `before`: the image that forked it, or (`by_exec`) that it was; NULL for
     * the first. Returns whether the task is to be let go. */
    int (*begin)(struct trace_sink *self, const struct trace_image *image,
                 const struct trace_image *before, int by_exec);
    void (*event)(struct trace_sink *self, const struct trace_event *event);
    void (*entry)(struct trace_sink *self, const struct trace_image *image, uint64_t at_ns);
    /* `status` as waitpid gives it; -1: another image took its place. */
    void (*end)(struct trace_sink *self, const struct trace_image *image, uint64_t at_ns,
                int status);
    /* Bring all to the file; `last`: nobody is left who could do anything. */
    void (*flush)(struct trace_sink *self, const struct trace_stops *stops, int last);
};

/* Starts a tracer of this process, which is to execute the program next. Returns when it watches,
 * or has given up; it says how in its answer. `rank`: -1 for none; other images have that of their
 * environment, or of who started them. */
enum trace_how trace_start(struct trace_sink *sink, enum trace_how wanted, int32_t rank);

/* For trace_start: watches until nobody is left. The program has been seized. */
void trace_watch(struct trace_sink *sink, pid_t program, pid_t parent, int32_t rank,
                 enum trace_how how);

#endif
