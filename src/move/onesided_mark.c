/* Which windows a rank touches, and what it says of them. See onesided_parts.h. */
#include "move/onesided_parts.h"

/* From here on the walk along the pieces costs less than the zeros that it may save: of 48 MiB in
 * runs of 3 KiB, these were a quarter of the time. */
#define WORTH_RUN 512u

int span_of(const struct onesided_run *run, uint32_t d, uint64_t round, struct span *span)
{
    const struct io_plan *plan = &run->plan;
    uint64_t window = plan->first[d] + round;
    if (window >= plan->first[d + 1])
        return 0;
    uint64_t start = window * plan->window_bytes, end = start + plan->window_bytes;
    *span = (struct span){.owner = plan->writers[d],
                          .start = start,
                          .from = start > plan->low ? start : plan->low,
                          .until = end < run->end ? end : run->end};
    return span->from < span->until;
}

int span_touched(const struct onesided_run *run, const struct span *span)
{
    const struct io_request *request = run->call->request;
    struct io_cursor cursor;
    if (span->from >= request->high || span->until <= request->low)
        return 0;
    cursor_seek(&cursor, request, span->from);
    return cursor_at(&cursor) < span->until;
}

int span_is_own(const struct onesided_run *run, const struct span *span, char **memory)
{
    struct io_cursor cursor;
    struct io_part part;
    if (run->plan.transport != IO_DIRECT)
        return 0;
    cursor_seek(&cursor, run->call->request, span->from);
    if (!cursor_next(&cursor, span->until, &part) || part.offset != span->from ||
        part.bytes != span->until - span->from)
        return 0;
    *memory = part.memory;
    return 1;
}

/* As good as random (splitmix64). */
static uint64_t hash(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint64_t mark_full(const struct span *span)
{
    return hash(span->until) - hash(span->from);
}

uint64_t mark_of(const struct onesided_run *run, const struct span *span)
{
    const struct onesided_call *call = run->call;
    struct io_cursor cursor;
    struct io_part part;
    uint64_t sum = 0, end = UINT64_MAX;
    char *memory;
    int own = span_is_own(run, span, &memory);
    if (!run->collect)
        return !own;
    if (own)
        return MARK_OWN;
    if (span->from >= run->size && request_mean_run(call->request) < WORTH_RUN)
        return 1; /* nothing to read there, and zeros cost little */
    cursor_seek(&cursor, call->request, span->from);
    while (cursor_next(&cursor, span->until, &part)) {
        if (part.offset != end)
            sum -= hash(part.offset) - (end == UINT64_MAX ? 0 : hash(end));
        end = part.offset + part.bytes;
    }
    sum += hash(end);
    return sum ? sum : 1;
}

/* A window of a domain is in the round that says how many of its windows are before it. */
int64_t next_round(const struct onesided_run *run, int64_t round)
{
    const struct io_plan *plan = &run->plan;
    const struct io_request *request = run->call->request;
    uint64_t least = INT64_MAX;
    struct io_cursor cursor;
    for (uint32_t d = 0; d < plan->n_writers; d++) {
        uint64_t from = (plan->first[d] + (uint64_t)(round + 1)) * plan->window_bytes;
        uint64_t until = plan->first[d + 1] * plan->window_bytes;
        until = until < run->end ? until : run->end;
        if (from >= until || from >= request->high || until <= request->low)
            continue;
        cursor_seek(&cursor, request, from);
        uint64_t at = cursor_at(&cursor);
        if (at < until && at / plan->window_bytes - plan->first[d] < least)
            least = at / plan->window_bytes - plan->first[d];
    }
    return (int64_t)least;
}
