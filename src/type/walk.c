/* See walk.h. */
#include "type/walk.h"

/* Makes the comb of what `node`, which lies at `at`, begins with; rows and lists on the way become
 * places. `data` are the bytes where node is NULL. */
static void descend(struct walk *w, const struct layout *node, int64_t at, uint64_t data)
{
    while (node && node->kind != LAYOUT_DATA) {
        if (node->kind == LAYOUT_ROW && node->child->kind == LAYOUT_DATA) {
            w->comb.at = at;
            w->comb.stride = node->stride;
            w->comb.bytes = node->child->bytes;
            w->comb.left = node->count;
            return;
        }
        w->places[w->depth++] = (struct walk_place){.node = node, .at = at};
        if (node->kind == LAYOUT_ROW) {
            node = node->child;
        } else {
            data = layout_entry_bytes(node, 0);
            node = layout_entry_child(node, 0);
        }
    }
    w->comb.at = at;
    w->comb.bytes = node ? node->bytes : data;
    w->comb.left = 1;
}

/* The comb after this one; 0 where there is none. */
static int next_comb(struct walk *w)
{
    while (w->depth) {
        struct walk_place *place = &w->places[w->depth - 1];
        const struct layout *node = place->node;
        uint64_t i = ++place->index;
        if (i == node->count) {
            w->depth--;
        } else if (node->kind == LAYOUT_ROW) {
            descend(w, node->child, place->at + (int64_t)i * node->stride, 0);
            return 1;
        } else {
            descend(w, layout_entry_child(node, i), place->at + node->entries[i].at,
                    layout_entry_bytes(node, i));
            return 1;
        }
    }
    w->comb.left = 0;
    return 0;
}

/* To the next entry of a list of data, if there is one: entries that follow each other do not
 * touch. */
static int next_entry(struct walk *w)
{
    struct walk_place *place = &w->places[w->depth - 1];
    const struct layout *node = place->node;
    if (node->kind != LAYOUT_LIST || node->children || place->index + 1 == node->count)
        return 0;
    uint64_t i = ++place->index;
    w->comb.at = place->at + node->entries[i].at;
    w->comb.bytes = layout_entry_bytes(node, i);
    return 1;
}

/* The last run of a comb may go on in the next one, and that one's, if it has no other, too. */
void walk_climb(struct walk *w)
{
    w->run.bytes = 0;
    if (w->comb.left == 0)
        return;
    w->run.bytes = w->comb.bytes;
    if (w->depth && next_entry(w))
        return;
    while (next_comb(w) && w->comb.at == w->run.at + (int64_t)w->run.bytes) {
        w->run.bytes += w->comb.bytes;
        if (w->comb.left > 1) {
            w->comb.at += w->comb.stride;
            w->comb.left--;
            return;
        }
    }
}

/* ---- starting somewhere ---- */

/* The run under the walk is the comb's next, less its first `skip` bytes. */
static void begin_run(struct walk *w, uint64_t skip)
{
    walk_next(w);
    w->run.at += (int64_t)skip;
    w->run.bytes -= skip;
}

static void start_comb(struct walk *w, const struct layout *row, int64_t at, uint64_t i)
{
    w->comb.at = at + (int64_t)i * row->stride;
    w->comb.stride = row->stride;
    w->comb.bytes = row->child->bytes;
    w->comb.left = row->count - i;
}

static void start_run(struct walk *w, int64_t at, uint64_t bytes)
{
    w->comb.at = at;
    w->comb.bytes = bytes;
    w->comb.left = 1;
}

static void start_place(struct walk *w, const struct layout *node, int64_t at, uint64_t i)
{
    w->places[w->depth++] = (struct walk_place){.node = node, .at = at, .index = i};
}

/* Entry of a list that has byte `position`. */
static uint64_t entry_of(const struct layout *list, uint64_t position)
{
    uint64_t low = 0, high = list->count;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (list->entries[middle].before <= position)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void walk_start(struct walk *w, struct placed what, uint64_t position)
{
    const struct layout *node = what.layout;
    int64_t at = what.at;
    uint64_t data = 0, i;
    w->depth = 0;
    w->run.bytes = w->comb.left = 0;
    if (!node || position >= node->bytes)
        return;
    while (node && node->kind != LAYOUT_DATA) {
        if (node->kind == LAYOUT_ROW) {
            i = position / node->child->bytes;
            position -= i * node->child->bytes;
            if (node->child->kind == LAYOUT_DATA) {
                start_comb(w, node, at, i);
                begin_run(w, position);
                return;
            }
            start_place(w, node, at, i);
            at += (int64_t)i * node->stride;
            node = node->child;
        } else {
            i = entry_of(node, position);
            position -= node->entries[i].before;
            start_place(w, node, at, i);
            at += node->entries[i].at;
            data = layout_entry_bytes(node, i);
            node = layout_entry_child(node, i);
        }
    }
    start_run(w, at, node ? node->bytes : data);
    begin_run(w, position);
}

/* The first entry of a list that ends after `at`, or the last one. */
static uint64_t entry_after(const struct layout *list, int64_t at)
{
    uint64_t low = 0, high = list->count - 1;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        const struct layout *child = layout_entry_child(list, middle);
        int64_t end = child ? child->high : (int64_t)layout_entry_bytes(list, middle);
        if (list->entries[middle].at + end > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The first child of a row that ends after `at`, or the last one. */
static uint64_t child_after(const struct layout *row, int64_t at)
{
    int64_t high = row->child->high;
    uint64_t i = at < high ? 0 : (uint64_t)(at - high) / (uint64_t)row->stride + 1;
    return i < row->count ? i : row->count - 1;
}

uint64_t walk_start_at(struct walk *w, struct placed what, int64_t wanted)
{
    const struct layout *node = what.layout;
    int64_t at = what.at;
    uint64_t data = 0, before = 0, i;
    w->depth = 0;
    w->run.bytes = w->comb.left = 0;
    if (!node || wanted >= at + node->high)
        return node ? node->bytes : 0;
    if (wanted < at) /* what is apart begins with its lowest byte */
        wanted = at;
    while (node && node->kind != LAYOUT_DATA) {
        if (node->kind == LAYOUT_ROW) {
            i = child_after(node, wanted - at);
            before += i * node->child->bytes;
            if (node->child->kind == LAYOUT_DATA) {
                start_comb(w, node, at, i);
                data = node->child->bytes;
                break;
            }
            start_place(w, node, at, i);
            at += (int64_t)i * node->stride;
            node = node->child;
        } else {
            i = entry_after(node, wanted - at);
            before += node->entries[i].before;
            start_place(w, node, at, i);
            at += node->entries[i].at;
            data = layout_entry_bytes(node, i);
            node = layout_entry_child(node, i);
        }
    }
    if (!node || node->kind == LAYOUT_DATA)
        start_run(w, at, node ? node->bytes : data);
    uint64_t skip = wanted > w->comb.at ? (uint64_t)(wanted - w->comb.at) : 0;
    begin_run(w, skip);
    return before + skip;
}
