/* See file_early.h. */
#include "io/file_early.h"

#include <errno.h>

#include "base/clock.h"
#include "base/error.h"
#include "move/early.h"

/* More than this is worth a look whether others failed meanwhile. */
#define MOST_BYTES (UINT64_C(64) << 20)

/* What the judge tells each rank. */
enum told {
    TOLD_SHARES = 1, /* its blocks are others' as well */
    TOLD_DENSE = 2   /* what all have written lies next to each other */
};

/* Of what several ranks wrote the highest one's bytes stay; whether there is such a thing shows
 * only where each has one run. */
static int may_write(brg_file *f, struct early *early, struct io_part *run)
{
    struct io_world *w = f->world;
    struct plan_ranks ranks = move_ranks(w);
    struct plan_place place = move_place(&f->token, 1);
    if (w->n_nodes > 1 || !request_run(early->request, run))
        return 0;
    /* others may not ask now: nothing may be made for it */
    ranks.past = experience_peek(&w->past, f->token.device, plan_is_long(run->bytes));
    return early_may(early, &f->hints, &place, &ranks) &&
           store_may_early(f->store, run->bytes, run->offset);
}

static int may_read(const brg_file *f, struct early *early)
{
    struct plan_ranks ranks = move_ranks(f->world);
    struct plan_place place = move_place(&f->token, 0);
    int is_long = plan_is_long(request_mean_run(early->request));
    return early->request->high <= f->size && (is_long || !f->hints.verify) &&
           early_may(early, &f->hints, &place, &ranks);
}

static int read_all(const brg_file *f, struct brg_error *err)
{
    const struct io_request *r = f->early.own.request;
    uint64_t got;
    file_tell(f, 0, r->bytes);
    int rc = early_move(&f->early.own, &got, err);
    if (!rc && got < r->bytes)
        rc = brg_error_set(err, -ENODATA, "the file ends before byte %llu",
                           (unsigned long long)r->high);
    if (!rc)
        file_tell(f, r->bytes, r->bytes);
    return rc;
}

static int write_all(const brg_file *f, const struct io_part *run, struct brg_error *err)
{
    file_tell(f, 0, run->bytes);
    int rc = store_write_early(f->store, run->memory, run->bytes, run->offset, err);
    if (!rc)
        file_tell(f, run->bytes, run->bytes);
    return rc;
}

void file_early_begin(brg_file *f, enum file_action action, const struct io_request *request,
                      int refused)
{
    struct file_early *e = &f->early;
    int writes = action == FILE_WRITE;
    struct io_part run;
    e->began_ns = brg_clock_ns();
    e->left = e->moved = 0;
    e->own = (struct early){
        .store = f->store, .request = request, .rank = f->world->rank, .share = {.writes = writes}};
    if (refused || !request->bytes || e->failure.code)
        return;
    e->left = !(writes ? may_write(f, &e->own, &run) : may_read(f, &e->own)) ||
              request->bytes > MOST_BYTES;
    if (e->left)
        return;
    e->moved = writes;
    e->low = request->low;
    e->high = request->high;
    if (writes)
        write_all(f, &run, &e->failure);
    else
        read_all(f, &e->failure);
}

int file_early_scattered(brg_file *f, struct io_extent *extent, const int64_t *v, int *rc)
{
    struct plan_ranks ranks = move_ranks(f->world);
    struct plan_place place = move_place(&f->token, 0);
    if (!early_is_scattered(&f->early.own, v + EARLY_LEFT, &f->hints, &place, extent, &ranks))
        return 0;
    if (f->early.left)
        read_all(f, &f->failure);
    *rc = world_failure(f->world, &f->failure);
    return 1;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void file_early_say(const brg_file *f, int64_t *v)
{
    const struct file_early *e = &f->early;
    uint64_t block = f->token.block_bytes, from = 0, until = 0;
    int streams = store_stream(f->store, &from, &until);
    if (e->moved) {
        uint64_t first = e->low / block * block, end = (e->high + block - 1) / block * block;
        from = streams ? least(from, first) : first;
        until = most(until, end);
    }
    v[EARLY_DONE] = !e->left;
    v[EARLY_LOW] = e->moved ? (int64_t)e->low : 0;
    v[EARLY_HIGH] = e->moved ? (int64_t)e->high : 0;
    v[EARLY_FROM] = (int64_t)from;
    v[EARLY_UNTIL] = (int64_t)until;
    v[EARLY_FAILED] = world_failure_key(f->world, &e->failure);
    early_say_left(e->left && !e->own.share.writes && !f->hints.verify ? &e->own : NULL,
                   v + EARLY_LEFT);
}

int file_early_judge(void *file, int64_t *values)
{
    struct io_world *w = ((brg_file *)file)->world;
    struct early_claim claims[EARLY_MOST_RANKS];
    unsigned char shares[EARLY_MOST_RANKS];
    if (!values[EARLY_DONE] || w->n_nodes > 1 || w->size > EARLY_MOST_RANKS)
        return 0;
    for (uint32_t r = 0; r < w->size; r++)
        claims[r] = (struct early_claim){
            (uint64_t)world_heard(w, r, EARLY_LOW), (uint64_t)world_heard(w, r, EARLY_HIGH),
            (uint64_t)world_heard(w, r, EARLY_FROM), (uint64_t)world_heard(w, r, EARLY_UNTIL)};
    values[EARLY_DONE] = early_judge(claims, w->size, shares);
    int dense = values[EARLY_DONE] && early_is_dense(claims, w->size);
    for (uint32_t r = 0; r < w->size && values[EARLY_DONE]; r++)
        world_tell(w, r, EARLY_DONE, (shares[r] ? TOLD_SHARES : 0) | (dense ? TOLD_DENSE : 0));
    return 0;
}

static int64_t told(const brg_file *f)
{
    return world_told(f->world, EARLY_DONE);
}

/* Ranks take turns: it takes one of them as long as a short write. What had begun by itself, or
 * lies apart, is left. */
void file_early_start(brg_file *f, const struct io_extent *e)
{
    struct file_early *own = &f->early;
    int is_short = (told(f) & TOLD_DENSE) && e->run < STORE_START_BYTES;
    if (e->low != own->until)
        own->from = e->low;
    own->until = e->high;
    if (!is_short)
        own->from = own->until;
    if (own->until - own->from < STORE_START_BYTES)
        return;
    if (own->turn++ % f->world->size == f->world->rank)
        store_start(f->store, own->from, own->until);
    own->from = own->until;
}

void file_early_end(brg_file *f, enum file_early_end end, uint64_t high)
{
    enum store_early_end how = end == FILE_EARLY_DOUBT   ? STORE_DOUBT
                               : end == FILE_EARLY_AGAIN ? STORE_AGAIN
                               : told(f) & TOLD_SHARES   ? STORE_SHARED
                                                         : STORE_KEEP;
    if (end == FILE_EARLY_KEEP)
        f->size = most(f->size, high);
    if (end == FILE_EARLY_KEEP || f->early.moved)
        store_end_early(f->store, how, end == FILE_EARLY_KEEP ? f->size : 0, &f->early.failure);
    f->early.moved = 0;
}
