/* Where the bytes of a type lie: a tree of rows and lists over runs of bytes. Pure.
 *
 *   data  `bytes` bytes that lie together
 *   row   `count` times the same child, `stride` bytes apart: a dimension of an array, whatever its
 *         length
 *   list  `n` children, each at a place of its own; with the number of bytes before each, so that
 *         one of them is found by a binary search
 *
 * What must stay true, and what walk.c is built on:
 *   - a node's places are relative to its first byte: the first run begins at 0;
 *   - what lies together is together: a row over data has a stride other than the data's bytes, two
 *     data of a list that follow each other do not touch, a list has two children at least, a row a
 *     count of two at least; so exactly the data nodes are one run;
 *   - nodes do not change, and are shared by counting who uses them: types that contain each other
 *     many times over stay small.
 * Places and sizes of what was built fit into 63 bits. */
#ifndef BRG_TYPE_LAYOUT_H
#define BRG_TYPE_LAYOUT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Rows and lists inside each other, after merging. */
#define LAYOUT_MAX_DEPTH 64

enum layout_kind {
    LAYOUT_DATA,
    LAYOUT_ROW,
    LAYOUT_LIST
};

struct layout_entry {
    int64_t at;
    uint64_t before; /* bytes of the entries before this one */
};

struct layout {
    atomic_uint users;
    enum layout_kind kind;
    int depth;         /* rows and lists from here down: 0 for data */
    uint8_t rising;    /* no run begins before the one that it follows */
    uint8_t apart;     /* no run begins before the end of the one that it follows */
    uint64_t bytes;    /* of data, 1 to 2^63-1 */
    uint64_t runs;     /* UINT64_MAX: that many or more */
    int64_t low, high; /* hull of all bytes: low <= 0 < high */
    int64_t last;      /* where the last run begins */
    int64_t end;       /* where the last run ends */
    /* of the lowest bit that is set in it: all runs begin and end on a multiple (from the first
     * byte on); their lengths are multiples */
    uint64_t places, lengths;
    uint64_t count; /* of a row's or a list's children */
    int64_t stride;
    struct layout *child; /* of a row */
    /* of a list */
    struct layout_entry *entries;
    struct layout **children; /* NULL: all are data; NULL for one: it is data */
};

/* A layout put somewhere; no layout: no bytes. */
struct placed {
    struct layout *layout;
    int64_t at; /* of its first byte */
};

/* Each sets *out to a layout of the caller's (layout_release), and returns 0, or -errno: -ENOMEM,
 * -EOVERFLOW (past 63 bits), -ELOOP (deeper than LAYOUT_MAX_DEPTH). What it is made of stays the
 * caller's. */
int layout_data(uint64_t bytes, struct placed *out);
int layout_row(struct placed child, uint64_t count, int64_t stride, struct placed *out);

/* A list is made by adding what follows. Zeroed to begin with; `finish` or `drop` ends it. */
struct layout_maker {
    size_t n, room;
    struct layout_entry *entries;
    struct layout **children;
    uint64_t bytes;
    int64_t end; /* of the last entry, if it is data */
};
int layout_add(struct layout_maker *maker, struct placed what);
int layout_finish(struct layout_maker *maker, struct placed *out);
void layout_drop(struct layout_maker *maker);

/* `layout` may be NULL. */
struct layout *layout_share(struct layout *layout);
void layout_release(struct layout *layout);

/* Bytes of entry i of a list. */
static inline uint64_t layout_entry_bytes(const struct layout *list, uint64_t i)
{
    uint64_t until = i + 1 < list->count ? list->entries[i + 1].before : list->bytes;
    return until - list->entries[i].before;
}

/* The layout of entry i, or NULL: data. */
static inline const struct layout *layout_entry_child(const struct layout *list, uint64_t i)
{
    return list->children ? list->children[i] : NULL;
}

#endif
