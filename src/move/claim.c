/* See claim.h. */
#include "move/claim.h"

#include <string.h>

#include "stream/group.h"

/* Of a writer on the only node: a window that it writes, and one that fills meanwhile. More would
 * take further pages that nobody has touched. */
#define NEAR_SLOTS 2u
#define MANY_PARTS 16 /* enough to tell whether runs are long */
#define LONG_FLAG 0x8000u
#define ONE(local) ((uint32_t)(local) << 16 | 1u) /* one more; 15 bits count, 16 tell who */

enum plane {
    TOUCHED,
    SINGLE,
    AGAIN,
    PLANES
};

static size_t align_up(size_t bytes, size_t to)
{
    return (bytes + to - 1) & ~(to - 1);
}

static uint32_t most_near(const struct io_plan *plan)
{
    uint32_t n = plan->n_writers * NEAR_SLOTS;
    return n < CLAIM_MAX_SLOTS ? n : CLAIM_MAX_SLOTS;
}

void claims_begin(struct claims *c, struct io_world *world, const struct io_plan *plan)
{
    struct io_area *area = world->area;
    char *at = area->room;
    c->world = world;
    c->plan = plan;
    c->n_cells = plan_claims(area->room_bytes, world->n_nodes);
    c->per_domain = c->n_cells / plan->n_writers;
    c->shift = 0;
    c->in_turns = 0;
    c->board = (struct board *)(void *)at;
    at += align_up(sizeof *c->board, 64);
    c->turns = (_Atomic uint32_t *)(void *)at;
    at += align_up((size_t)world->n_local * sizeof *c->turns, 64);
    c->again = (_Atomic uint64_t *)(void *)at;
    at += c->n_cells / 8;
    c->planes = (uint64_t *)(void *)at;
    at += (size_t)c->n_cells / 8 * world->n_nodes * PLANES;
    c->cells = (_Atomic uint32_t *)(void *)at;
    at += (size_t)c->n_cells * 4;
    c->tasks = (uint32_t *)(void *)at;
    at += (size_t)c->n_cells * 4;
    size_t used = align_up((size_t)(at - area->room), 4096);
    c->slots = area->room + used;
    c->slot_bytes = align_up(bucket_room((uint32_t)plan->window_bytes), 64);
    size_t n = (area->room_bytes - used) / c->slot_bytes - (world->n_nodes > 1);
    uint32_t most = plan->is_near ? most_near(plan) : CLAIM_MAX_SLOTS;
    c->n_slots = n > most ? most : (uint32_t)n;
    c->grain = bucket_grain((uint32_t)plan->window_bytes >> CLAIM_PARTS_SHIFT, plan->grain);
    memcpy(c->cursor, plan->first, plan->n_writers * sizeof *c->cursor);
}

static uint64_t end_of(const struct claims *c, uint32_t domain)
{
    uint64_t end = c->plan->first[domain + 1];
    return end - c->cursor[domain] > c->per_domain ? c->cursor[domain] + c->per_domain : end;
}

/* ---- marking ---- */

static int are_long(const struct io_request *request, uint64_t from, uint64_t until,
                    uint64_t long_bytes)
{
    struct io_cursor cursor;
    struct io_part part;
    uint64_t bytes = 0;
    int n = 0;
    for (cursor_seek(&cursor, request, from); n < MANY_PARTS && cursor_next(&cursor, until, &part);
         n++)
        bytes += part.bytes;
    return n < MANY_PARTS && (n == 1 || bytes / (uint64_t)n >= long_bytes);
}

static void mark_domain(struct claims *c, const struct io_request *request, uint32_t domain,
                        uint64_t long_bytes)
{
    uint64_t bytes = c->plan->window_bytes, end = end_of(c, domain) * bytes;
    struct io_cursor cursor;
    for (uint64_t from = c->cursor[domain] * bytes; from < end;) {
        cursor_seek(&cursor, request, from);
        uint64_t at = cursor_at(&cursor);
        if (at >= end)
            return;
        uint64_t window = at / bytes;
        _Atomic uint32_t *cell =
            &c->cells[domain * c->per_domain + (uint32_t)(window - c->cursor[domain])];
        atomic_fetch_add_explicit(cell, ONE(c->world->local), memory_order_relaxed);
        from = (window + 1) * bytes;
        if (are_long(request, at, from, long_bytes))
            atomic_fetch_or_explicit(cell, LONG_FLAG, memory_order_relaxed);
    }
}

void claims_mark(struct claims *c, const struct io_request *request, uint64_t long_bytes)
{
    for (uint32_t domain = 0; domain < c->plan->n_writers; domain++)
        if (request->bytes && c->plan->first[domain + 1] * c->plan->window_bytes > request->low &&
            c->plan->first[domain] * c->plan->window_bytes < request->high)
            mark_domain(c, request, domain, long_bytes);
}

/* ---- listing ---- */

static uint64_t *plane(const struct claims *c, uint32_t node, enum plane which)
{
    return c->planes + ((size_t)node * PLANES + which) * (c->n_cells / 64);
}

static int bit(const uint64_t *bits, uint32_t i)
{
    return (int)(bits[i / 64] >> i % 64 & 1);
}

static void fill_planes(const struct claims *c)
{
    uint64_t *touched = plane(c, c->world->node, TOUCHED);
    uint64_t *single = plane(c, c->world->node, SINGLE);
    memset(touched, 0, (size_t)c->n_cells / 8 * PLANES);
    for (uint32_t cell = 0; cell < c->n_cells; cell++) {
        uint32_t value = atomic_load_explicit(&c->cells[cell], memory_order_relaxed);
        touched[cell / 64] |= (uint64_t)(value != 0) << cell % 64;
        single[cell / 64] |= (uint64_t)((value & 0xffff) == (LONG_FLAG | 1)) << cell % 64;
    }
}

/* Every node's `bytes` bytes of `all` to every node. */
static int exchange(struct io_world *w, void *all, size_t bytes)
{
    struct stream_request request = {.active = 0};
    return w->leaders ? world_finish(w, w->leaders, &request,
                                     group_gather_all(w->leaders, all, bytes, &request))
                      : 0;
}

int claims_touch(const struct claims *c, uint32_t cell, uint32_t node)
{
    return bit(plane(c, node, TOUCHED), cell);
}

static int touched_by_any(const struct claims *c, uint32_t cell, uint32_t *nodes)
{
    *nodes = 0;
    uint32_t which = 0;
    for (uint32_t node = 0; node < c->world->n_nodes && *nodes < 2; node++)
        if (claims_touch(c, cell, node)) {
            which = node;
            ++*nodes;
        }
    return (int)which;
}

int claims_own(const struct claims *c, uint32_t cell, uint32_t *local)
{
    uint32_t nodes;
    if (c->plan->transport != IO_DIRECT && c->plan->transport != IO_ROTATE)
        return 0;
    uint32_t node = (uint32_t)touched_by_any(c, cell, &nodes);
    if (nodes != 1 || !bit(plane(c, node, SINGLE), cell))
        return 0;
    *local = node == c->world->node
                 ? atomic_load_explicit(&c->cells[cell], memory_order_relaxed) >> 16
                 : UINT32_MAX;
    return 1;
}

static int another_writes(const struct claims *c, uint32_t cell)
{
    uint32_t nodes, local;
    touched_by_any(c, cell, &nodes);
    if (!nodes)
        return 0;
    if (claims_own(c, cell, &local))
        return local != c->world->local;
    return claims_home(c, cell) != c->world->rank;
}

int claims_others_write(const struct claims *c, uint64_t from, uint64_t until)
{
    uint64_t bytes = c->plan->window_bytes;
    for (uint32_t d = 0; d < c->plan->n_writers; d++) {
        uint64_t first = from / bytes, end = (until + bytes - 1) / bytes;
        first = first > c->cursor[d] ? first : c->cursor[d];
        end = end < end_of(c, d) ? end : end_of(c, d);
        for (uint64_t w = first; w < end; w++)
            if (another_writes(c, d * c->per_domain + (uint32_t)(w - c->cursor[d])))
                return 1;
    }
    return 0;
}

/* Whether this node has to do with a window that goes through slots. */
static int is_task(const struct claims *c, uint32_t cell)
{
    uint32_t nodes, local;
    touched_by_any(c, cell, &nodes);
    if (!nodes || claims_own(c, cell, &local))
        return 0;
    return claims_touch(c, cell, c->world->node) ||
           c->world->node_of[claims_home(c, cell)] == c->world->node;
}

static uint32_t used_slots(const struct claims *c)
{
    return c->board->n_tasks < c->n_slots ? c->board->n_tasks : c->n_slots;
}

static void lay(const struct claims *c, uint32_t slot, struct bucket *bucket)
{
    bucket_lay(bucket, c->slots + slot * c->slot_bytes, claims_part_bytes(c), c->grain,
               c->in_turns && c->world->n_nodes > 1);
}

/* Slots that the call will use begin open and clear. */
static void open_slots(const struct claims *c)
{
    uint32_t n = used_slots(c);
    for (uint32_t i = 0; i < n; i++) {
        struct bucket bucket;
        claims_bucket(c, i, &bucket);
        bucket_clear(&bucket, bucket.start);
        atomic_store_explicit(&c->board->slots[i].came, 0, memory_order_relaxed);
        atomic_store_explicit(&c->board->slots[i].stage, SLOT_OPEN, memory_order_relaxed);
    }
}

int claims_list(void *context, int64_t *least)
{
    struct claims *c = context;
    struct board *board = c->board;
    (void)least;
    fill_planes(c);
    int rc = exchange(c->world, c->planes, (size_t)c->n_cells / 8 * PLANES);
    if (rc)
        return rc;
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->per_domain; i++)
        for (uint32_t d = 0; d < c->plan->n_writers; d++)
            if (c->cursor[d] + i < c->plan->first[d + 1] && is_task(c, d * c->per_domain + i))
                c->tasks[n++] = d * c->per_domain + i;
    board->n_tasks = n << c->shift;
    atomic_store_explicit(&board->failing, 0, memory_order_relaxed);
    atomic_store_explicit(&board->again, 0, memory_order_relaxed);
    atomic_store_explicit(&board->tickets, 0, memory_order_relaxed);
    atomic_store_explicit(&board->served, 0, memory_order_relaxed);
    memset((void *)c->again, 0, c->n_cells / 8);
    memset((void *)c->turns, 0, c->world->n_local * sizeof *c->turns);
    open_slots(c);
    return 0;
}

void claims_have(const struct claims *c)
{
    uint32_t n = used_slots(c);
    if (n && (c->plan->transport == IO_SIMPLE || c->plan->transport == IO_BRIGADE))
        area_have(c->world->area, (size_t)(c->slots - c->world->area->room) + n * c->slot_bytes);
}

int claims_list_again(void *context, int64_t *least)
{
    struct claims *c = context;
    uint64_t *mine = plane(c, c->world->node, AGAIN);
    (void)least;
    claims_take_turns(c);
    for (uint32_t i = 0; i < c->n_cells / 64; i++)
        mine[i] = atomic_load_explicit(&c->again[i], memory_order_relaxed);
    int rc = exchange(c->world, c->planes, (size_t)c->n_cells / 8 * PLANES);
    uint32_t n = 0;
    for (uint32_t t = 0; t < c->board->n_tasks && !rc; t++) {
        int again = 0;
        for (uint32_t node = 0; node < c->world->n_nodes && !again; node++)
            again = bit(plane(c, node, AGAIN), c->tasks[t]);
        if (again)
            c->tasks[n++] = c->tasks[t];
    }
    c->board->n_tasks = n << c->shift;
    memset((void *)c->turns, 0, c->world->n_local * sizeof *c->turns);
    if (!rc)
        open_slots(c);
    return rc;
}

void claims_take_turns(struct claims *c)
{
    uint32_t parts = c->grain < CLAIM_COARSE_GRAIN ? CLAIM_PARTS_SHIFT : CLAIM_COARSE_SHIFT;
    c->in_turns = 1;
    c->shift = c->world->n_nodes > 1 ? parts : 0;
}

int claims_wipe(void *context, int64_t *least)
{
    struct claims *c = context;
    (void)least;
    memset((void *)c->cells, 0, (size_t)c->n_cells * sizeof *c->cells);
    return 0;
}

/* ---- slots ---- */

void claims_bucket(const struct claims *c, uint32_t task, struct bucket *bucket)
{
    lay(c, task % c->n_slots, bucket);
    bucket->start = claims_start(c, task);
}

uint32_t claims_spares(const struct claims *c, struct bucket *spares, uint32_t most)
{
    uint32_t free_ones = c->n_slots + 1 - used_slots(c), n = free_ones < most ? free_ones : most;
    for (uint32_t i = 0; i < n; i++)
        lay(c, c->n_slots - i, &spares[i]);
    return n;
}

void claims_free(const struct claims *c, uint32_t task, struct bucket *bucket)
{
    struct board_slot *slot = claims_slot(c, task);
    bucket_clear(bucket, bucket->start);
    atomic_store_explicit(&slot->came, 0, memory_order_relaxed);
    area_set(&slot->stage, claims_base(c, task) + SLOT_STAGES);
    if (c->world->n_nodes > 1)
        area_add(&c->world->area->head->bell, 1);
}

/* ---- turns ---- */

void claims_reach(const struct claims *c, uint32_t task)
{
    area_set(&c->turns[c->world->local], task);
}

int claims_wait_turn(const struct claims *c, uint32_t task)
{
    int rc = 0;
    for (uint32_t before = 0; before < c->world->local && !rc; before++)
        rc = area_wait_unless(c->world->area, &c->turns[before], task + 1, &c->board->failing);
    return rc;
}

void claims_wake_turns(const struct claims *c)
{
    for (uint32_t local = 0; local < c->world->n_local; local++)
        area_wake(&c->turns[local]);
}

/* ---- what is left for another epoch ---- */

int claims_are_left(const struct claims *c)
{
    for (uint32_t d = 0; d < c->plan->n_writers; d++)
        if (end_of(c, d) < c->plan->first[d + 1])
            return 1;
    return 0;
}

void claims_next(const struct claims *c, const struct io_request *request, int64_t *next)
{
    for (uint32_t d = 0; d < c->plan->n_writers; d++) {
        struct io_cursor cursor;
        cursor_seek(&cursor, request, end_of(c, d) * c->plan->window_bytes);
        uint64_t at = cursor_at(&cursor);
        next[d] = at < c->plan->first[d + 1] * c->plan->window_bytes
                      ? (int64_t)(at / c->plan->window_bytes)
                      : INT64_MAX;
    }
}

void claims_advance(struct claims *c, const int64_t *next)
{
    c->shift = 0;
    c->in_turns = 0;
    for (uint32_t d = 0; d < c->plan->n_writers; d++)
        c->cursor[d] = next[d] == INT64_MAX ? c->plan->first[d + 1] : (uint64_t)next[d];
}
