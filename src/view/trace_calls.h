/* The system calls of a traced program that are look-ups, as records of the trial. */
#ifndef BRG_VIEW_TRACE_CALLS_H
#define BRG_VIEW_TRACE_CALLS_H

#include "view/view.h"

#include <stdint.h>

enum traced_how {
    TRACED_LOOKUP, /* its name is the record's kind */
    TRACED_STAT,   /* `stat` or `lstat`, by a flag */
    TRACED_ACCESS, /* with a mode */
    TRACED_OPEN,   /* for reading, or a `write` */
    TRACED_LIST,   /* of what a descriptor refers to */
    TRACED_WRITE   /* its name says what */
};

struct traced_call {
    uint64_t nr;
    enum traced_how how;
    const char *name;
    int fd, path, flags; /* which arguments they are, or -1 */
};

/* NULL if a call is no look-up. */
const struct traced_call *traced_call_of(uint64_t nr);

/* The path that a process has just asked for, made absolute: into `buf` of PATH_MAX bytes. To be
 * called before the kernel does it. 0 or -errno. */
int traced_call_path(const struct traced_call *call, int pid, const uint64_t *args, char *buf);

/* Records the call with its outcome (`err`: 0 or an errno). */
void traced_call_record(const struct view *v, const struct traced_call *call, uint64_t flags,
                        int err, const char *path);

#endif
