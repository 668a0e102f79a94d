/* A rank's own windows: no copy, and nobody to wait for but, with `rotate`, one's turn. */
#include "move/move_parts.h"

#define PIECE_BYTES (UINT64_C(64) << 20)

/* The next run of own windows of a domain from cell i on: [*i, *until). */
static int next_run(const struct claims *c, uint32_t domain, uint32_t *i, uint32_t *until)
{
    uint64_t left = c->plan->first[domain + 1] - c->cursor[domain];
    uint32_t end = left < c->per_domain ? (uint32_t)left : c->per_domain;
    uint32_t first = domain * c->per_domain, local;
    for (; *i < end; ++*i) {
        for (*until = *i; *until < end && claims_count(c, first + *until) == 1 &&
                          claims_own(c, first + *until, &local) && local == c->world->local;)
            ++*until;
        if (*until > *i)
            return 1;
    }
    return 0;
}

/* Windows side by side are written as one. What others failed in ends it, but not before its first
 * piece: a rank that fails as well at once is heard of. */
static int move_run(struct mover *m, uint64_t from, uint64_t until)
{
    struct io_cursor cursor;
    struct io_part part;
    struct brg_error err = {.rank = -1, .offset = -1};
    int rc = 0;
    cursor_seek(&cursor, m->call->request, from);
    while (!rc && from < until) {
        uint64_t end = until - from > PIECE_BYTES ? from + PIECE_BYTES : until;
        uint64_t moved = 0;
        while (!rc && cursor_next(&cursor, end, &part)) {
            rc = m->collect ? mover_write(m, part.memory, part.bytes, part.offset, &err)
                            : mover_read(m, part.memory, part.bytes, part.offset, &err);
            moved += part.bytes;
        }
        if (!rc)
            mover_moved(m, moved);
        from = end;
        if (atomic_load_explicit(&m->claims.board->failing, memory_order_relaxed))
            break;
    }
    if (rc)
        mover_fail(m, &m->failure, &err);
    return rc;
}

/* Of the ranks of a node as many at once as there are writers for it, one after another. */
static int take_turn(struct mover *m)
{
    const struct io_world *world = m->call->world;
    struct board *board = m->claims.board;
    uint32_t at_once = m->call->plan->n_writers / world->n_nodes;
    uint32_t ticket = atomic_fetch_add(&board->tickets, 1);
    if (at_once < 1)
        at_once = 1;
    return area_wait_unless(world->area, &board->served, ticket - at_once + 1, &board->failing);
}

void own_move(struct mover *m)
{
    const struct claims *c = &m->claims;
    uint64_t bytes = c->plan->window_bytes;
    int turns = c->plan->transport == IO_ROTATE, waited = 0, rc = 0;
    for (uint32_t d = 0; d < c->plan->n_writers && !rc; d++) {
        uint32_t i = 0, until = 0;
        for (; !rc && next_run(c, d, &i, &until); i = until) {
            if (turns && !waited++)
                rc = take_turn(m);
            if (!rc)
                rc = move_run(m, (c->cursor[d] + i) * bytes, (c->cursor[d] + until) * bytes);
        }
    }
    if (waited)
        area_add(&c->board->served, 1);
}
