/* Letters: see onesided_parts.h.
 *
 *   letter   u64 bytes, this word among them; more than there is room for: it did not come, nor
 *            did any behind it
 *            groups until then
 *   group    u32 first: where its first piece begins, from the beginning of the window
 *            u32 bytes of a piece, u32 from one piece's beginning to the next one's, u32 pieces
 *            their bytes, one piece after another, filled up to 8 */
#include <string.h>

#include "move/onesided_parts.h"

#define HEAD 8u
#define ALIGN(n) (((n) + 7) & ~(size_t)7)

struct group {
    uint32_t first, bytes, apart, pieces;
};

/* Whether a piece at `at` goes on with a group. */
static int goes_on(struct group *g, uint32_t at, uint32_t bytes)
{
    if (!g->pieces || g->bytes != bytes)
        return 0;
    if (g->pieces == 1)
        g->apart = at - g->first;
    return at == g->first + g->pieces * g->apart;
}

size_t letter_pack(const struct onesided_run *run, const struct span *span, char *to, size_t room)
{
    struct io_cursor cursor;
    struct io_part part;
    struct group group = {.pieces = 0};
    size_t header = 0, end = HEAD; /* of the group under way; of all */
    cursor_seek(&cursor, run->call->request, span->from);
    while (cursor_next(&cursor, span->until, &part)) {
        uint32_t at = (uint32_t)(part.offset - span->start), bytes = (uint32_t)part.bytes;
        if (!goes_on(&group, at, bytes)) {
            header = ALIGN(end);
            end = header + sizeof group;
            group = (struct group){.first = at, .bytes = bytes};
        }
        if (ALIGN(end + bytes) > room)
            return 0;
        group.pieces++;
        memcpy(to + header, &group, sizeof group);
        memcpy(to + end, part.memory, bytes);
        end += bytes;
    }
    uint64_t all = ALIGN(end);
    memcpy(to, &all, sizeof all);
    return (size_t)all;
}

/* Nothing of another rank's letter is trusted to stay within the window: where it would not, the
 * rest is left. */
static void open_one(const char *letter, size_t all, size_t window_bytes, char *window)
{
    struct group group;
    size_t at = HEAD;
    while (at + sizeof group <= all) {
        memcpy(&group, letter + at, sizeof group);
        at += sizeof group;
        for (uint32_t i = 0; i < group.pieces; i++, at += group.bytes) {
            size_t place = group.first + (size_t)i * group.apart;
            if (at + group.bytes > all || place + group.bytes > window_bytes)
                return;
            memcpy(window + place, letter + at, group.bytes);
        }
        at = ALIGN(at);
    }
}

void letters_open(const char *box, uint64_t posted, size_t room, const struct span *span,
                  char *window)
{
    uint64_t all;
    for (size_t at = 0; at + HEAD <= room && at < posted; at += all) {
        memcpy(&all, box + at, sizeof all);
        if (all < HEAD || all > room - at)
            return;
        open_one(box + at, (size_t)all, room, window + span->start);
    }
}
