/* See alone.h. */
#include "move/alone.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define ROOM_BYTES (256u << 10) /* what is moved through memory of ours, at a time */
#define LONG_BYTES (32u << 10)  /* from here on a part moves by itself */
#define PAGE_BYTES 4096u        /* what the kernel reads before a part of it can be written */
#define AHEAD_PARTS 128u

/* The room is taken when it is needed first. */
static int need_room(char **room, struct brg_error *err)
{
    if (!*room)
        *room = malloc(ROOM_BYTES);
    return *room ? 0 : brg_error_set(err, -ENOMEM, "no memory to move pieces of a file");
}

/* ---- what is not in memory ---- */

enum store_where alone_where(struct io_store *store, const struct io_request *request, uint32_t nth,
                             uint32_t of)
{
    uint64_t span = request->high - request->low;
    struct io_cursor cursor;
    if (request->bytes == span)
        return STORE_IN_MEMORY;
    cursor_seek(&cursor, request, request->low + span / of * nth + span / of / 2);
    return store_where(store, cursor_at(&cursor));
}

/* Of a walk through a request's parts: those to come are asked for long before, so that a disk has
 * many to choose from. */
struct ahead {
    struct io_store *store;
    int writes, asks;
    uint32_t left; /* parts that were asked for */
};

static struct ahead ahead_of(struct io_store *store, enum store_where where, int writes)
{
    return (struct ahead){.store = store,
                          .writes = writes,
                          .asks = where == STORE_ON_DISK || (where == STORE_UNKNOWN && !writes)};
}

/* What is written needs the rest of its first page and of its last. */
static void ask_for(const struct ahead *a, const struct io_part *part)
{
    uint64_t first = part->offset / PAGE_BYTES, end = part->offset + part->bytes;
    if (!a->writes) {
        store_ask_for(a->store, part->bytes < ROOM_BYTES ? part->bytes : ROOM_BYTES, part->offset);
        return;
    }
    if (part->offset % PAGE_BYTES)
        store_ask_for(a->store, 1, part->offset);
    if (end % PAGE_BYTES && (end / PAGE_BYTES > first || !(part->offset % PAGE_BYTES)))
        store_ask_for(a->store, 1, end);
}

/* Before a part is taken from the cursor. */
static void look_ahead(struct ahead *a, const struct io_cursor *at)
{
    struct io_part part;
    if (!a->asks || a->left--)
        return;
    struct io_cursor cursor = *at;
    for (a->left = 0; a->left < AHEAD_PARTS && cursor_next(&cursor, UINT64_MAX, &part); a->left++)
        ask_for(a, &part);
    a->left -= a->left > 0;
}

/* ---- writing ---- */

struct gathering {
    struct io_store *store;
    char *room;
    const char *from; /* what is gathered: in the room, or one part where it lies */
    uint64_t offset;
    size_t bytes;
};

static int flush(struct gathering *g, struct brg_error *err)
{
    int rc = g->bytes ? store_write(g->store, g->from, g->bytes, g->offset, err) : 0;
    g->bytes = 0;
    return rc;
}

static int append(struct gathering *g, const struct io_part *part, struct brg_error *err)
{
    int rc = need_room(&g->room, err);
    if (rc)
        return rc;
    if (g->from != g->room)
        memcpy(g->room, g->from, g->bytes);
    g->from = g->room;
    memcpy(g->room + g->bytes, part->memory, part->bytes);
    g->bytes += part->bytes;
    return 0;
}

static int gather(struct gathering *g, const struct io_part *part, struct brg_error *err)
{
    if (g->bytes && part->offset == g->offset + g->bytes && part->bytes < LONG_BYTES &&
        g->bytes + part->bytes <= ROOM_BYTES)
        return append(g, part, err);
    int rc = flush(g, err);
    if (!rc) {
        g->from = part->memory;
        g->offset = part->offset;
        g->bytes = part->bytes;
    }
    return rc;
}

int alone_write(struct io_store *store, const struct io_request *request, enum store_where where,
                struct brg_error *err)
{
    struct gathering g = {.store = store};
    struct ahead ahead = ahead_of(store, where, 1);
    struct io_cursor cursor;
    struct io_part part;
    int rc = 0;
    cursor_seek(&cursor, request, 0);
    for (look_ahead(&ahead, &cursor); !rc && cursor_next(&cursor, UINT64_MAX, &part);
         look_ahead(&ahead, &cursor))
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
        if (s->parts && (part.offset > s->end + REQUEST_GAP || part.bytes >= LONG_BYTES ||
                         part.offset + part.bytes > s->at + ROOM_BYTES))
            return;
        if (!s->parts++)
            s->at = part.offset;
        s->end = part.offset + part.bytes;
        if (part.bytes >= LONG_BYTES)
            return;
    }
}

int alone_read(struct io_store *store, const struct io_request *request, enum store_where where,
               uint64_t *got, struct brg_error *err)
{
    struct io_cursor cursor;
    struct ahead ahead = ahead_of(store, where, 0);
    struct stretch s;
    struct io_part part;
    char *room = NULL;
    uint64_t moved = 0;
    int rc = 0, ended = 0;
    cursor_seek(&cursor, request, 0);
    for (find_stretch(cursor, &s); !rc && !ended && s.parts; find_stretch(cursor, &s)) {
        size_t there = 0;
        look_ahead(&ahead, &cursor);
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
