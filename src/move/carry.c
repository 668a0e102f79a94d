/* See carry.h. */
#include "move/carry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "move/move_parts.h"
#include "world/fault.h"

#define TAG_BOXES 0x4204
/* Of one node: what a message takes without asking for it first in most MPIs. */
#define LITTLE_BYTES (64u << 10)
/* Between the first and the last byte that is read: all of it comes to every node. Four nodes of
 * MooseFS, records of 1 KiB: 16 KiB took 4.3 ms to open, read and close instead of 5.1, 256 KiB 5.8
 * instead of 6.3, 1 MiB 11.4 instead of 10.6. */
#define SPREAD_BYTES (256u << 10)
#define LEAST_ROOM (256u << 10) /* of an area, for claims to have enough beside boxes and window */
#define LEAST_WINDOW 4096u
#define MOST_WINDOW (1u << 20)
#define ALIGN 64u

/* What one rank asks for: its runs, in the order of the file, and behind them their bytes. */
struct box {
    uint32_t n_runs;
    uint32_t bytes; /* of the box, a multiple of ALIGN */
    uint32_t run;   /* who empties it: the next run, */
    uint32_t at;    /* and its first byte in the box */
    struct box_run {
        uint64_t offset, bytes;
    } runs[];
};

/* Where all of it lies in the room of a node's area: from its end, boxes in five eighths of it, and
 * a window in two. */
struct desk {
    size_t node_bytes, box_bytes; /* for the boxes of a node, for each of this node's ranks */
    char *boxes;                  /* a node's behind the other's */
    char *window;                 /* rank 0's */
    uint32_t window_bytes;
};

static struct desk desk_of(const struct io_world *w)
{
    size_t eighth = w->area->room_bytes / 8 / ALIGN * ALIGN;
    char *end = w->area->room + 8 * eighth;
    struct desk d = {.node_bytes = 5 * eighth / w->n_nodes / ALIGN * ALIGN,
                     .boxes = end - 5 * eighth,
                     .window = end - 7 * eighth,
                     .window_bytes = LEAST_WINDOW};
    d.box_bytes = d.node_bytes / w->n_local / ALIGN * ALIGN;
    while (bucket_room(d.window_bytes * 2) <= 2 * eighth && d.window_bytes < MOST_WINDOW)
        d.window_bytes *= 2;
    return d;
}

/* ---- filling ---- */

/* The box with its runs, without their bytes; NULL: they have no room. */
static struct box *list_runs(char *at, size_t room, const struct io_request *request)
{
    struct box *box = (struct box *)(void *)at;
    struct io_cursor cursor;
    struct io_part part;
    size_t most = room < sizeof *box + request->bytes
                      ? 0
                      : (room - sizeof *box - request->bytes) / sizeof *box->runs;
    if (room < sizeof *box)
        return NULL;
    box->n_runs = box->run = 0;
    if (!request->bytes)
        return box;
    cursor_seek(&cursor, request, request->low);
    while (cursor_next(&cursor, UINT64_MAX, &part)) {
        struct box_run *last = box->n_runs ? &box->runs[box->n_runs - 1] : NULL;
        if (last && last->offset + last->bytes == part.offset)
            last->bytes += part.bytes;
        else if (box->n_runs == most)
            return NULL;
        else
            box->runs[box->n_runs++] = (struct box_run){part.offset, part.bytes};
    }
    return box;
}

static size_t lesser(size_t a, size_t b)
{
    return a < b ? a : b;
}

enum carry_load carry_put(struct io_world *w, const struct io_request *request, int much)
{
    _Atomic uint32_t *emptied = &w->area->head->emptied;
    struct io_cursor cursor;
    struct io_part part;
    if (w->n_nodes == 1 || w->n_nodes > CARRY_MOST_NODES || w->area->room_bytes < LEAST_ROOM ||
        (w->node == w->node_of[0] && area_wait(w->area, emptied, w->carried)))
        return CARRY_TOO_MUCH;
    struct desk d = desk_of(w);
    size_t little = lesser(d.node_bytes, LITTLE_BYTES) / w->n_local;
    char *at = d.boxes + w->node * d.node_bytes + w->local * d.box_bytes;
    struct box *box = list_runs(at, much ? d.box_bytes : little / ALIGN * ALIGN, request);
    if (!box)
        return CARRY_TOO_MUCH;
    char *to = (char *)&box->runs[box->n_runs];
    box->at = (uint32_t)(to - at);
    if (request->bytes)
        for (cursor_seek(&cursor, request, request->low); cursor_next(&cursor, UINT64_MAX, &part);
             to += part.bytes)
            memcpy(to, part.memory, part.bytes);
    box->bytes = (uint32_t)((size_t)(to - at) + ALIGN - 1) / ALIGN * ALIGN;
    return box->bytes <= little ? CARRY_LITTLE : CARRY_MUCH;
}

/* ---- bringing ---- */

/* The boxes of this node, one behind the other: their bytes. */
static size_t close_up(const struct io_world *w, const struct desk *d)
{
    char *from = d->boxes + w->node * d->node_bytes, *to = from;
    for (uint32_t i = 0; i < w->n_local; i++) {
        const struct box *box = (const struct box *)(void *)(from + i * d->box_bytes);
        size_t bytes = box->bytes;
        memmove(to, box, bytes);
        to += bytes;
    }
    return (size_t)(to - from);
}

/* All are asked for at once: a large message waits until it is. */
static int bring_all(struct io_world *w, const struct desk *d)
{
    struct stream_request requests[CARRY_MOST_NODES] = {{.active = 0}};
    int rc = 0;
    for (uint32_t node = 0; node < w->n_nodes && !rc; node++)
        if (node != w->node)
            rc = w->leaders->receive(w->leaders, d->boxes + node * d->node_bytes, d->node_bytes,
                                     node, TAG_BOXES, &requests[node]);
    for (uint32_t node = 0; node < w->n_nodes && !rc; node++)
        if (node != w->node) {
            rc = world_finish(w, w->leaders, &requests[node], 0);
            io_fault_kill(IO_FAULT_PASS);
        }
    return rc;
}

int carry_bring(struct io_world *w)
{
    struct desk d = desk_of(w);
    struct stream_request request = {.active = 0};
    size_t bytes = close_up(w, &d);
    if (w->rank == 0)
        return bring_all(w, &d);
    int rc = w->leaders->send(w->leaders, d.boxes + w->node * d.node_bytes, bytes, w->node_of[0],
                              TAG_BOXES, &request);
    io_fault_kill(IO_FAULT_PASS);
    return world_finish(w, w->leaders, &request, rc);
}

/* ---- emptying ---- */

/* What came from elsewhere is believed only where it fits. */
static int fits(const struct box *box, size_t room)
{
    if (room < sizeof *box || box->bytes > room || box->bytes < sizeof *box || box->run ||
        box->n_runs > (box->bytes - sizeof *box) / sizeof *box->runs ||
        box->at != sizeof *box + box->n_runs * sizeof *box->runs)
        return 0;
    uint64_t left = box->bytes - box->at;
    for (uint32_t i = 0; i < box->n_runs; i++) {
        if (box->runs[i].bytes > left)
            return 0;
        left -= box->runs[i].bytes;
    }
    return 1;
}

/* By rank. */
static int find_boxes(const struct io_world *w, const struct desk *d, struct box **boxes)
{
    for (uint32_t node = 0; node < w->n_nodes; node++) {
        char *at = d->boxes + node * d->node_bytes, *end = at + d->node_bytes;
        for (uint32_t i = w->first_of[node]; i < w->first_of[node + 1]; i++) {
            struct box *box = (struct box *)(void *)at;
            if (!fits(box, (size_t)(end - at)))
                return -EPROTO;
            boxes[w->order[i]] = box;
            at += box->bytes;
        }
    }
    return 0;
}

/* The first byte of the file that is left in any of them. */
static uint64_t next_byte(struct box *const *boxes, uint32_t n)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < n; i++)
        if (boxes[i]->run < boxes[i]->n_runs && boxes[i]->runs[boxes[i]->run].offset < least)
            least = boxes[i]->runs[boxes[i]->run].offset;
    return least;
}

/* What belongs into the window. */
static void take(struct box *box, struct bucket *window, uint32_t rank)
{
    uint64_t end = window->start + window->bytes;
    while (box->run < box->n_runs && box->runs[box->run].offset < end) {
        struct box_run *run = &box->runs[box->run];
        uint64_t bytes = run->bytes < end - run->offset ? run->bytes : end - run->offset;
        bucket_put(window, run->offset, (char *)box + box->at, bytes, rank);
        box->at += (uint32_t)bytes;
        run->offset += bytes;
        run->bytes -= bytes;
        box->run += run->bytes == 0;
    }
}

static int empty(struct mover *m, struct box *const *boxes, const struct desk *d, uint32_t grain,
                 struct brg_error *err)
{
    uint32_t n = m->call->world->size;
    uint64_t at;
    struct bucket window;
    int rc = 0;
    bucket_lay(&window, d->window, d->window_bytes, bucket_grain(d->window_bytes, grain), 0);
    while (!rc && (at = next_byte(boxes, n)) != UINT64_MAX) {
        bucket_clear(&window, at / d->window_bytes * d->window_bytes);
        for (uint32_t rank = 0; rank < n; rank++)
            take(boxes[rank], &window, rank);
        bucket_done(&window);
        rc = sieve_write(m, &window, err);
    }
    return rc;
}

static int write_boxes(const struct io_call *call, uint32_t grain, struct brg_error *err)
{
    struct io_world *w = call->world;
    struct desk d = desk_of(w);
    struct mover m = {.call = call, .collect = 1};
    struct box **boxes = malloc(w->size * sizeof(struct box *));
    int rc = boxes ? find_boxes(w, &d, boxes) : -ENOMEM;
    if (rc) {
        free(boxes);
        return brg_error_system(err, rc, "cannot write what was carried to rank 0");
    }
    store_begin_call(call->store);
    rc = empty(&m, boxes, &d, grain, err);
    free(boxes);
    return rc ? rc : store_end_call(call->store, call->size, err);
}

int carry_write(const struct io_call *call, uint32_t grain, struct brg_error *err)
{
    struct io_world *w = call->world;
    w->carried++;
    if (w->rank != 0)
        return 0;
    int rc = write_boxes(call, grain, err);
    area_add(&w->area->head->emptied, 1);
    return rc;
}

/* ---- reading ---- */

/* In the window of each node's desk: what rank 0 has read, behind a word that says how it went. */
struct spread {
    int64_t code; /* 0 or -errno */
    int64_t zero[7];
    char bytes[];
};

static struct spread *spread_of(const struct io_world *w)
{
    return (struct spread *)(void *)desk_of(w).window;
}

int carry_reads(const struct io_world *w, uint64_t low, uint64_t high)
{
    return w->n_nodes > 1 && w->area->room_bytes >= LEAST_ROOM && low < high &&
           high - low <= lesser(SPREAD_BYTES, desk_of(w).window_bytes / 2);
}

int carry_spread(const struct io_call *call, uint64_t low, uint64_t high, struct brg_error *err)
{
    struct io_world *w = call->world;
    struct stream_request request = {.active = 0};
    struct spread *spread = spread_of(w);
    if (w->rank == 0)
        spread->code = store_read_all(call->store, spread->bytes, high - low, low, err);
    io_fault_kill(IO_FAULT_PASS);
    return world_finish(w, w->leaders, &request,
                        w->leaders->broadcast(w->leaders, spread, sizeof *spread + high - low,
                                              w->node_of[0], &request));
}

int carry_take(const struct io_call *call, uint64_t low)
{
    const struct spread *spread = spread_of(call->world);
    struct io_cursor cursor;
    struct io_part part;
    if (spread->code || !call->request->bytes)
        return (int)spread->code;
    cursor_seek(&cursor, call->request, low);
    while (cursor_next(&cursor, UINT64_MAX, &part))
        memcpy(part.memory, spread->bytes + (part.offset - low), part.bytes);
    return 0;
}
