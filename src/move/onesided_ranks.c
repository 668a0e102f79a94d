/* A rank's own part in a step: marks of a round to come, bytes of the round that is open. See
 * onesided_parts.h. */
#include <string.h>

#include "base/error.h"
#include "move/onesided_parts.h"
#include "world/fault.h"

/* Shorter pieces that lie out of reach are fetched together, with what is between them. */
#define FAR_RUN 4096u

static void failed(struct onesided_run *run, int rc)
{
    if (!run->failure.code)
        brg_error_system(&run->failure, rc, "cannot reach the memory of another rank (%s)",
                         run->o->pgas->name);
}

void ranks_mark(struct onesided_run *run, int64_t round, unsigned turn)
{
    struct onesided *o = run->o;
    struct span span;
    for (uint32_t d = 0; round != INT64_MAX && d < run->plan.n_writers; d++) {
        uint64_t before, mark;
        if (!span_of(run, d, (uint64_t)round, &span) || !span_touched(run, &span) ||
            !(mark = mark_of(run, &span)))
            continue;
        o->cost.additions++;
        int rc = o->pgas->fetch_add(o->pgas, mark_at(o, turn), mark, span.owner, &before);
        if (rc)
            failed(run, rc);
    }
}

/* Whether nobody else touches a window that is this rank's own to write. */
static int is_alone(struct onesided_run *run, const struct span *span, unsigned turn)
{
    struct pgas *p = run->o->pgas;
    uint64_t mark = 0;
    int rc = p->get(p, &mark, mark_at(run->o, turn), sizeof mark, span->owner);
    if (!rc)
        rc = p->quiet(p);
    if (rc)
        failed(run, rc);
    return mark == MARK_OWN;
}

static void move_own(struct onesided_run *run, const struct span *span, char *memory)
{
    size_t bytes = (size_t)(span->until - span->from), got;
    struct brg_error err = {.rank = -1, .offset = -1};
    int rc = run->collect ? onesided_to_file(run, memory, bytes, span->from, &err)
                          : onesided_from_file(run, memory, bytes, span->from, &got, &err);
    run->o->cost.own_bytes += bytes;
    if (rc && !run->failure.code) {
        run->failure = err;
        run->failure.code = rc;
    }
}

/* `window` is in reach: where byte 0 of the file would be. */
static void copy(struct onesided_run *run, const struct span *span, char *window)
{
    struct io_cursor cursor;
    struct io_part part;
    cursor_seek(&cursor, run->call->request, span->from);
    while (cursor_next(&cursor, span->until, &part)) {
        if (run->collect)
            memcpy(window + part.offset, part.memory, part.bytes);
        else
            memcpy(part.memory, window + part.offset, part.bytes);
        run->o->cost.near_bytes += part.bytes;
    }
}

/* All that lies between the first and the last piece comes in one move. */
static int fetch_hull(struct onesided_run *run, const struct span *span, unsigned turn)
{
    struct onesided *o = run->o;
    const struct io_request *request = run->call->request;
    char *hull = scratch_at(o);
    struct io_cursor cursor;
    cursor_seek(&cursor, request, span->from);
    uint64_t from = cursor_at(&cursor), until = span->until;
    from = from > span->from ? from : span->from;
    until = request->high < until ? request->high : until;
    o->cost.far_moves++;
    o->cost.far_bytes += until - from;
    int rc = o->pgas->get(o->pgas, hull + (from - span->start),
                          window_at(o, turn) + (from - span->start), (size_t)(until - from),
                          span->owner);
    if (!rc)
        rc = o->pgas->quiet(o->pgas);
    if (!rc)
        copy(run, span, hull - span->start);
    return rc;
}

/* All short pieces go in one letter. *posted: whether the owner's box had room for it. The first
 * that has none leaves its length there, which says so. */
static int post(struct onesided_run *run, const struct span *span, unsigned turn, int *posted)
{
    struct onesided *o = run->o;
    char *letter = scratch_at(o);
    uint64_t room = o->window_bytes, at;
    size_t n = letter_pack(run, span, letter, (size_t)room);
    *posted = 0;
    if (!n)
        return 0;
    int rc = o->pgas->fetch_add(o->pgas, posted_at(o, turn), n, span->owner, &at);
    o->cost.additions++;
    if (rc || at >= room)
        return rc;
    *posted = at + n <= room;
    if (!*posted)
        n = sizeof(uint64_t);
    o->cost.far_moves++;
    o->cost.far_bytes += n;
    rc = o->pgas->put(o->pgas, box_at(o, turn) + at, letter, n, span->owner);
    return rc ? rc : o->pgas->quiet(o->pgas); /* the letter's paper is used again */
}

static int move_far(struct onesided_run *run, const struct span *span, unsigned turn)
{
    struct onesided *o = run->o;
    char *window = window_at(o, turn) - span->start;
    struct io_cursor cursor;
    struct io_part part;
    int rc = 0, posted = 0, is_short = request_mean_run(run->call->request) < FAR_RUN;
    if (!run->collect && is_short)
        return fetch_hull(run, span, turn);
    if (run->collect && is_short)
        rc = post(run, span, turn, &posted);
    if (rc || posted)
        return rc;
    cursor_seek(&cursor, run->call->request, span->from);
    while (!rc && cursor_next(&cursor, span->until, &part)) {
        if (run->collect)
            rc = o->pgas->put(o->pgas, window + part.offset, part.memory, part.bytes, span->owner);
        else
            rc = o->pgas->get(o->pgas, part.memory, window + part.offset, part.bytes, span->owner);
        o->cost.far_moves++;
        o->cost.far_bytes += part.bytes;
    }
    return rc;
}

void ranks_move(struct onesided_run *run, int64_t round, unsigned turn)
{
    struct onesided *o = run->o;
    struct span span;
    char *memory;
    for (uint32_t d = 0; round != INT64_MAX && d < run->plan.n_writers; d++) {
        if (run->failure.code || !span_of(run, d, (uint64_t)round, &span) ||
            !span_touched(run, &span))
            continue;
        io_fault_kill(IO_FAULT_SLOT);
        char *near = o->pgas->pointer(o->pgas, window_at(o, turn), span.owner);
        int rc = 0;
        if (span_is_own(run, &span, &memory) && (!run->collect || is_alone(run, &span, turn)))
            move_own(run, &span, memory);
        else if (near)
            copy(run, &span, near - span.start);
        else
            rc = move_far(run, &span, turn);
        if (rc)
            failed(run, rc);
    }
    int rc = o->pgas->quiet(o->pgas);
    if (rc)
        failed(run, rc);
}
