/* See alone.h. */
#include "move/alone.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define ROOM_BYTES (256u << 10) /* what is moved through memory of ours, at a time */
#define LONG_BYTES (32u << 10)  /* from here on a part moves by itself */
#define GAP_BYTES 4096u         /* a larger one is not read */

/* The room is taken when it is needed first. */
static int need_room(char **room, struct brg_error *err)
{
    if (!*room)
        *room = malloc(ROOM_BYTES);
    return *room ? 0 : brg_error_set(err, -ENOMEM, "no memory to move pieces of a file");
}

/* ---- writing ---- */

struct gathering {
    struct io_store *store;
    char *room;
    uint64_t offset; /* of what is gathered */
    size_t bytes;
};

static int flush(struct gathering *g, struct brg_error *err)
{
    int rc = g->bytes ? store_write(g->store, g->room, g->bytes, g->offset, err) : 0;
    g->bytes = 0;
    return rc;
}

static int gather(struct gathering *g, const struct io_part *part, struct brg_error *err)
{
    int rc = 0;
    if (part->offset != g->offset + g->bytes || part->bytes >= LONG_BYTES ||
        part->bytes > ROOM_BYTES - g->bytes)
        rc = flush(g, err);
    if (rc)
        return rc;
    if (part->bytes >= LONG_BYTES)
        return store_write(g->store, part->memory, part->bytes, part->offset, err);
    if ((rc = need_room(&g->room, err)))
        return rc;
    if (!g->bytes)
        g->offset = part->offset;
    memcpy(g->room + g->bytes, part->memory, part->bytes);
    g->bytes += part->bytes;
    return 0;
}

int alone_write(struct io_store *store, const struct io_request *request, struct brg_error *err)
{
    struct gathering g = {.store = store};
    struct io_cursor cursor;
    struct io_part part;
    int rc = 0;
    cursor_seek(&cursor, request, 0);
    while (!rc && cursor_next(&cursor, UINT64_MAX, &part))
        rc = gather(&g, &part, err);
    rc = rc ? rc : flush(&g, err);
    free(g.room);
    return rc;
}

/* ---- reading ---- */

/* From the cursor's next part on, what is read at once: [at, end). */
struct stretch {
    uint64_t at, end;
    int parts;
};

static void find_stretch(struct io_cursor cursor, struct stretch *s)
{
    struct io_part part;
    *s = (struct stretch){0};
    while (cursor_next(&cursor, UINT64_MAX, &part)) {
        if (s->parts && (part.offset > s->end + GAP_BYTES || part.bytes >= LONG_BYTES ||
                         part.offset + part.bytes > s->at + ROOM_BYTES))
            return;
        if (!s->parts++)
            s->at = part.offset;
        s->end = part.offset + part.bytes;
        if (part.bytes >= LONG_BYTES)
            return;
    }
}

int alone_read(struct io_store *store, const struct io_request *request, uint64_t *got,
               struct brg_error *err)
{
    struct io_cursor cursor;
    struct stretch s;
    struct io_part part;
    char *room = NULL;
    uint64_t moved = 0;
    int rc = 0, ended = 0;
    cursor_seek(&cursor, request, 0);
    for (find_stretch(cursor, &s); !rc && !ended && s.parts; find_stretch(cursor, &s)) {
        size_t there = 0;
        if (s.parts == 1) {
            cursor_next(&cursor, UINT64_MAX, &part);
            rc = store_read(store, part.memory, part.bytes, part.offset, &there, err);
            moved += there;
        } else {
            rc = need_room(&room, err);
            rc = rc ? rc : store_read(store, room, (size_t)(s.end - s.at), s.at, &there, err);
            while (!rc && cursor_next(&cursor, s.at + there, &part)) {
                memcpy(part.memory, room + (part.offset - s.at), part.bytes);
                moved += part.bytes;
            }
        }
        ended = there < s.end - s.at;
    }
    free(room);
    if (!rc)
        *got = moved;
    return rc;
}
