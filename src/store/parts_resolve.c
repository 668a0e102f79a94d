/* From logs, in which bytes were written again and again, to extents in order without overlap.
 *
 * A range of the file is taken into memory; where there is not room enough for its extents, its
 * halves are, one after the other. What was taken is resolved by a sweep over the offsets, with a
 * heap of the extents that are open there: of these, the one of the latest call is on top (in one
 * call: of the highest part, and there the last written). */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "store/parts.h"
#include "store/store_io.h"

struct piece {
    struct parts_extent extent;
    uint64_t sequence, order; /* order: within its part */
};

struct resolver {
    const struct parts_logs *logs;
    struct parts_build *build;
    size_t room, n;
    struct piece *pieces, *winners; /* [room], [2 * room] */
    uint32_t *heap;                 /* [room] of pieces */
};

static uint64_t end_of(const struct piece *p)
{
    return p->extent.offset + p->extent.bytes;
}

static int by_offset(const void *a, const void *b)
{
    uint64_t x = ((const struct piece *)a)->extent.offset;
    uint64_t y = ((const struct piece *)b)->extent.offset;
    return (x > y) - (x < y);
}

static int later(const struct piece *a, const struct piece *b)
{
    if (a->sequence != b->sequence)
        return a->sequence > b->sequence;
    if (a->extent.part != b->extent.part)
        return a->extent.part > b->extent.part;
    return a->order > b->order;
}

static void heap_push(struct resolver *r, size_t *n, uint32_t piece)
{
    size_t i = (*n)++;
    while (i && later(&r->pieces[piece], &r->pieces[r->heap[(i - 1) / 2]])) {
        r->heap[i] = r->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    r->heap[i] = piece;
}

static void heap_pop(struct resolver *r, size_t *n)
{
    uint32_t last = r->heap[--*n];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < *n; i = child) {
        if (child + 1 < *n && later(&r->pieces[r->heap[child + 1]], &r->pieces[r->heap[child]]))
            child++;
        if (!later(&r->pieces[r->heap[child]], &r->pieces[last]))
            break;
        r->heap[i] = r->heap[child];
    }
    r->heap[i] = last;
}

/* Bytes [from, to) are piece p's; one with the winner before where it goes on. */
static size_t win(struct resolver *r, size_t n, const struct piece *p, uint64_t from, uint64_t to)
{
    struct piece *last = n ? &r->winners[n - 1] : NULL;
    uint64_t at = p->extent.at + (from - p->extent.offset);
    if (last && last->extent.part == p->extent.part && last->sequence == p->sequence &&
        last->order == p->order && end_of(last) == from &&
        last->extent.at + last->extent.bytes == at) {
        last->extent.bytes += to - from;
        return n;
    }
    r->winners[n] = *p;
    r->winners[n].extent.offset = from;
    r->winners[n].extent.bytes = to - from;
    r->winners[n].extent.at = at;
    return n + 1;
}

/* Fills winners from pieces; returns how many. */
static size_t sweep(struct resolver *r)
{
    size_t i = 0, open = 0, won = 0;
    uint64_t at = 0;
    qsort(r->pieces, r->n, sizeof *r->pieces, by_offset);
    while (i < r->n || open) {
        while (open && end_of(&r->pieces[r->heap[0]]) <= at)
            heap_pop(r, &open);
        if (!open) {
            if (i == r->n)
                break;
            at = r->pieces[i].extent.offset;
        }
        while (i < r->n && r->pieces[i].extent.offset <= at)
            heap_push(r, &open, (uint32_t)i++);
        while (open && end_of(&r->pieces[r->heap[0]]) <= at)
            heap_pop(r, &open);
        if (!open)
            continue;
        const struct piece *top = &r->pieces[r->heap[0]];
        uint64_t to = end_of(top);
        if (i < r->n && r->pieces[i].extent.offset < to)
            to = r->pieces[i].extent.offset;
        won = win(r, won, top, at, to);
        at = to;
    }
    return won;
}

/* Takes a piece; -EAGAIN when there is no room even after what it has was resolved. */
static int take(struct resolver *r, const struct piece *piece)
{
    if (r->n == r->room) {
        size_t won = sweep(r);
        if (won > r->room / 2)
            return -EAGAIN;
        memcpy(r->pieces, r->winners, won * sizeof *r->winners);
        r->n = won;
    }
    r->pieces[r->n++] = *piece;
    return 0;
}

static int take_log(struct resolver *r, uint32_t part, uint64_t low, uint64_t high)
{
    char name[PARTS_NAME];
    struct parts_record records[128];
    uint64_t at = 0, order = 0;
    int rc = 0;
    parts_name(name, r->logs->folder, r->logs->number[part], ".log");
    int fd = store_io_open(name, O_RDONLY, 0);
    if (fd < 0)
        return fd;
    while (!rc) {
        ssize_t got = store_io_read(fd, records, sizeof records, at);
        rc = got < 0 ? (int)got : 0;
        if (got < (ssize_t)sizeof *records)
            break;
        for (size_t i = 0; !rc && i < (size_t)got / sizeof *records; i++, order++) {
            struct parts_record *p = &records[i];
            uint64_t from = p->offset < low ? low : p->offset, end = p->offset + p->bytes;
            end = end < high ? end : high;
            struct piece piece = {
                {from, end - from, p->at + (from - p->offset), part, 0}, p->sequence, order};
            if (from < end)
                rc = take(r, &piece);
        }
        at += (uint64_t)got;
    }
    close(fd);
    return rc;
}

static int resolve_range(struct resolver *r, uint64_t low, uint64_t high)
{
    int rc = 0;
    r->n = 0;
    for (uint32_t part = 0; !rc && part < r->logs->n; part++)
        rc = take_log(r, part, low, high);
    if (rc == -EAGAIN) {
        uint64_t middle = low + (high - low) / 2;
        rc = resolve_range(r, low, middle);
        return rc ? rc : resolve_range(r, middle, high);
    }
    size_t won = rc ? 0 : sweep(r);
    for (size_t i = 0; !rc && i < won; i++)
        rc = parts_build_extent(r->build, &r->winners[i].extent);
    return rc;
}

int parts_resolve(const struct parts_logs *logs, uint64_t size, size_t memory,
                  struct parts_build *build)
{
    size_t each = 3 * sizeof(struct piece) + sizeof(uint32_t);
    struct resolver r = {.logs = logs, .build = build, .room = memory / each};
    if (r.room < 16)
        r.room = 16;
    r.pieces = malloc(r.room * sizeof *r.pieces);
    r.winners = malloc(2 * r.room * sizeof *r.winners);
    r.heap = malloc(r.room * sizeof *r.heap);
    int rc = r.pieces && r.winners && r.heap ? resolve_range(&r, 0, size) : -ENOMEM;
    free(r.pieces);
    free(r.winners);
    free(r.heap);
    return rc ? rc : parts_build_extent(build, NULL);
}
