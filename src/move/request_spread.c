/* See request.h: how a request's runs lie in the file, from a sample of them. */
#include "move/request.h"

/* Parts that are looked at, from the beginning and again from the middle. */
#define SAMPLE 32u

struct sample {
    uint64_t pitch[2 * SAMPLE]; /* rising */
    uint32_t pitches;
    uint64_t runs, bytes;
    int all; /* there is no more than this */
};

static void add_pitch(struct sample *s, uint64_t pitch)
{
    uint32_t at = s->pitches++;
    for (; at && s->pitch[at - 1] > pitch; at--)
        s->pitch[at] = s->pitch[at - 1];
    s->pitch[at] = pitch;
}

/* Parts that meet in the file are one run, wherever they lie in memory. */
static void look(struct sample *s, const struct io_request *request, uint64_t from)
{
    struct io_cursor cursor;
    struct io_part part;
    uint64_t run = 0, end = 0;
    uint32_t n = 0;
    cursor_seek(&cursor, request, from);
    for (; n < SAMPLE && cursor_next(&cursor, UINT64_MAX, &part); n++) {
        if (n && part.offset != end)
            add_pitch(s, part.offset - run);
        if (!n || part.offset != end) {
            run = part.offset;
            s->runs++;
        }
        end = part.offset + part.bytes;
        s->bytes += part.bytes;
    }
    s->all = cursor.ended;
}

struct request_spread request_spread(const struct io_request *request)
{
    uint64_t span = request->high - request->low;
    struct sample s = {.pitches = 0};
    if (!request->bytes)
        return (struct request_spread){0, 0, 0};
    if (request->bytes == span)
        return (struct request_spread){1, span, span};
    look(&s, request, request->low);
    if (s.all)
        return (struct request_spread){s.runs, s.bytes / s.runs, s.pitch[s.pitches / 4]};
    look(&s, request, request->low + span / 2);
    uint64_t run = s.bytes / s.runs;
    return (struct request_spread){request->bytes / run, run,
                                   s.pitches ? s.pitch[s.pitches / 4] : run};
}
