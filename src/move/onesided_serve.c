/* An owner's part in a step: its windows of one round go to the file, those of a later one are made
 * ready. See onesided_parts.h. */
#include <string.h>

#include "move/onesided_parts.h"
#include "world/fault.h"

static int read_window(struct serving *s, char *to, uint64_t from, uint64_t until)
{
    const struct onesided_call *call = s->run->call;
    size_t got = 0, bytes = (size_t)(until - from);
    int rc = s->run->collect ? drain_clear(call->drain, from, until, &s->failure) : 0;
    if (!rc)
        rc = onesided_from_file(s->run, to, bytes, from, &got, &s->failure);
    if (!rc)
        memset(to + got, 0, bytes - got);
    return rc;
}

/* What of a window no rank's bytes will cover is what the file has there. */
static int fill(struct serving *s, const struct span *span, uint64_t mark)
{
    struct onesided *o = s->run->o;
    uint64_t size = s->run->call->grows ? UINT64_MAX : s->run->size, kept = span->from;
    char *window = window_at(o, s->fill_turn) - span->start;
    int rc = 0;
    if (!mark || mark == MARK_OWN || (s->run->collect && mark == mark_full(span)))
        return 0;
    if (span->from < size) {
        kept = span->until < size ? span->until : size;
        rc = read_window(s, window + span->from, span->from, kept);
        *(s->run->collect ? &o->cost.kept_bytes : &o->cost.owner_bytes) += kept - span->from;
    }
    if (!rc)
        memset(window + kept, 0, span->until - kept);
    return rc;
}

static int empty(struct serving *s, const struct span *span, uint64_t mark)
{
    struct onesided *o = s->run->o;
    char *window = window_at(o, s->write_turn) - span->start;
    uint64_t *posted = posted_at(o, s->write_turn);
    if (!mark || mark == MARK_OWN)
        return 0;
    letters_open(box_at(o, s->write_turn), *posted, o->window_bytes, span, window);
    *posted = 0;
    o->cost.owner_bytes += span->until - span->from;
    return onesided_to_file(s->run, window + span->from, span->until - span->from, span->from,
                            &s->failure);
}

/* Each rank owns one domain at most. */
static int own_span(const struct onesided_run *run, int64_t round, struct span *span)
{
    for (uint32_t d = 0; round != INT64_MAX && d < run->plan.n_writers; d++)
        if (run->plan.writers[d] == run->o->pgas->rank)
            return span_of(run, d, (uint64_t)round, span);
    return 0;
}

void serve(struct serving *s)
{
    struct onesided *o = s->run->o;
    struct span span;
    int rc = 0;
    if (own_span(s->run, s->write, &span)) {
        uint64_t *mark = mark_at(o, s->write_turn);
        io_fault_kill(IO_FAULT_SLOT);
        rc = empty(s, &span, *mark);
        *mark = 0;
    }
    if (!rc && own_span(s->run, s->fill, &span)) {
        uint64_t *mark = mark_at(o, s->fill_turn);
        io_fault_kill(IO_FAULT_SLOT);
        rc = fill(s, &span, *mark);
        if (!s->run->collect)
            *mark = 0;
    }
    if (rc)
        s->failure.code = rc;
}
