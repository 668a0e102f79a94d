/* The table of calls. See calls.h. */
#include "trace/calls.h"

#include <sys/mman.h>

enum {
    NO = -1,
    NUMBERS = 512 /* above every number of both platforms */
};

const struct trace_call trace_calls[TRACE_CALLS] = {
#define CALL(name, fd, path, flags, other_fd, other) \
    {TRACE_##name, SYS_##name, #name, fd, path, flags, other_fd, other},
#include "trace/calls.def"
#undef CALL
};

static const uint8_t by_number[NUMBERS] = {
#define CALL(name, fd, path, flags, other_fd, other) [SYS_##name] = TRACE_##name + 1,
#include "trace/calls.def"
#undef CALL
};

const struct trace_call *trace_call_of(uint64_t nr)
{
    return nr < NUMBERS && by_number[nr] ? &trace_calls[by_number[nr] - 1] : NULL;
}

int trace_call_counts(const struct trace_call *call, const uint64_t *args)
{
    return call->id != TRACE_mmap || !(args[3] & MAP_ANONYMOUS);
}
