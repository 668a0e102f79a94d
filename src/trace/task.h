/* The threads that are traced, and the program images that they run. */
#ifndef BRG_TRACE_TASK_H
#define BRG_TRACE_TASK_H

#include "trace/calls.h"

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

/* One program image: a process between two execs. */
struct trace_image {
    uint32_t number; /* from 1 on, in the order of their start */
    pid_t pid, parent;
    int32_t rank;         /* -1: none */
    uint64_t start_ns;    /* CLOCK_MONOTONIC, as all times here */
    uint64_t foreign;     /* calls of another architecture's */
    uint64_t rings;       /* of io_uring, that were asked for */
    uint64_t entry;       /* address of its entry point while a breakpoint waits there */
    const char *executed; /* while it begins by an exec: the path that was given; else NULL */
    int blind;            /* nothing can wait at its entry point */
    unsigned living;      /* threads that have not begun to exit */
    unsigned tasks;       /* that point here */
};

/* One thread, and the call that it is in. */
struct trace_task {
    pid_t tid;
    struct trace_image *image;
    int exiting;
    int inside;                    /* its last stop at a call was at the beginning of one */
    int folder;                    /* /proc/TID, opened; -1: not yet */
    const struct trace_call *call; /* NULL: in none that counts */
    uint64_t args[6];
    uint64_t at_ns, flags;
    int by_fd;
    int unread; /* of path or other */
    char path[2 * PATH_MAX], other[2 * PATH_MAX];
    struct trace_task *next;
};

enum {
    TRACE_BUCKETS = 1024
};

struct trace_tasks {
    struct trace_task *buckets[TRACE_BUCKETS];
    unsigned living; /* tasks that have not begun to exit */
};

/* NULL if there is none. */
struct trace_task *trace_task_find(const struct trace_tasks *all, pid_t tid);

/* A new thread of `image`; NULL if there is no memory. */
struct trace_task *trace_task_create(struct trace_tasks *all, pid_t tid, struct trace_image *image);

/* A thread has begun to exit, or is gone. Returns how many of its image still live. */
unsigned trace_task_leaves(struct trace_tasks *all, struct trace_task *task);

/* Frees the task, and its image with the last one. */
void trace_task_destroy(struct trace_tasks *all, struct trace_task *task);

/* Gives `task` to another image. */
void trace_task_move(struct trace_task *task, struct trace_image *image);

/* Frees all tasks of an image but `kept`: exec has ended the other threads. */
void trace_task_keep_only(struct trace_tasks *all, struct trace_task *kept);

#endif
