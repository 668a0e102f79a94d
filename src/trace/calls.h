/* The system calls that a trace has: calls.def as a table. */
#ifndef BRG_TRACE_CALLS_H
#define BRG_TRACE_CALLS_H

#include "base/newer.h"

#include <stddef.h>
#include <stdint.h>

/* Not in the table, but stopped at: what goes through its ring is not seen. Linux 5.1. */
enum {
    TRACE_RING_SETUP = 425
};

/* What each call is, to compare with: TRACE_openat. */
enum trace_call_id {
#define CALL(name, fd, path, flags, other_fd, other) TRACE_##name,
#include "trace/calls.def"
#undef CALL
    TRACE_CALLS
};

struct trace_call {
    enum trace_call_id id;
    uint32_t nr;
    const char *name;
    int8_t fd, path, flags, other_fd, other; /* argument numbers, or -1 */
};

/* All of them, in no order. */
extern const struct trace_call trace_calls[TRACE_CALLS];

/* NULL if a call is none of them. */
const struct trace_call *trace_call_of(uint64_t nr);

/* Whether a call with these arguments is one that a trace has: anonymous mmap is none. */
int trace_call_counts(const struct trace_call *call, const uint64_t *args);

#endif
