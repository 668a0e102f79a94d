/* See request.h: how a request's runs lie in the file, from a sample of them. */
#include "move/request.h"

/* Parts that are looked at, from the beginning and again from the middle. */
#define SAMPLE 64u

struct sample {
    uint64_t pitch[2 * SAMPLE]; /* rising */
    uint32_t pitches;
    uint64_t stretches, runs, bytes, length;
    int all; /* there is no more than this */
};

static void add_pitch(struct sample *s, uint64_t pitch)
{
    uint32_t at = s->pitches++;
    for (; at && s->pitch[at - 1] > pitch; at--)
        s->pitch[at] = s->pitch[at - 1];
    s->pitch[at] = pitch;
}

static void look(struct sample *s, const struct io_request *request, uint64_t from)
{
    struct io_cursor cursor;
    struct io_part part;
    uint64_t begin = 0, end = 0;
    uint32_t n = 0;
    cursor_seek(&cursor, request, from);
    for (; n < SAMPLE && cursor_next(&cursor, UINT64_MAX, &part); n++) {
        int goes_on = n && part.offset - end <= REQUEST_GAP;
        if (n && !goes_on)
            add_pitch(s, part.offset - begin);
        if (!goes_on) {
            begin = end = part.offset;
            s->stretches++;
        }
        s->runs += !n || part.offset != end || begin == end;
        s->length += part.offset + part.bytes - end;
        s->bytes += part.bytes;
        end = part.offset + part.bytes;
    }
    s->all = cursor.ended;
}

struct request_spread request_spread(const struct io_request *request)
{
    uint64_t span = request->high - request->low;
    struct sample s = {.pitches = 0};
    if (!request->bytes)
        return (struct request_spread){.runs = 0};
    if (request->bytes == span)
        return (struct request_spread){
            .stretches = 1, .runs = 1, .run = span, .length = span, .pitch = span};
    look(&s, request, request->low);
    if (!s.all)
        look(&s, request, request->low + span / 2);
    struct request_spread spread = {.stretches = s.stretches,
                                    .runs = s.runs,
                                    .run = s.bytes / s.runs,
                                    .length = s.length / s.stretches};
    if (s.bytes < request->bytes) {
        spread.runs = request->bytes / spread.run;
        spread.stretches = spread.runs * s.stretches / s.runs;
    }
    spread.pitch = s.pitches ? s.pitch[s.pitches / 4] : spread.length;
    return spread;
}
