/* See file_move.h. */
#include "io/file_move.h"

#include <stdio.h>

#include "base/clock.h"

/* What was written before, by whomever, must not arrive after what is written now to the same
 * bytes: it may wait in a rank's buffer, with hint async, or in another node's client (hull.h).
 * [low, high) is what all ranks write now. */
static int let_arrive(brg_file *f, uint64_t low, uint64_t high)
{
    struct hull *behind = &f->behind;
    int cached = f->world->n_nodes > 1 && f->token.layout != IO_PARTS;
    if ((!f->hints.async && !cached) || !hull_meets(behind, low, high))
        return 0;
    if (cached)
        drain_show(f->drain, &f->failure);
    else
        drain_clear(f->drain, low, high, &f->failure);
    int rc = world_failure(f->world, &f->failure);
    if (cached)
        *behind = (struct hull){0, 0};
    return rc;
}

/* These bytes are written now. */
static void reach(brg_file *f, uint64_t low, uint64_t high)
{
    if (low < high && f->hints.async)
        file_busy(f, 1);
    hull_add(&f->behind, low, high);
}

static void explain(brg_file *f, const struct io_plan *plan)
{
    const struct io_world *w = f->world;
    snprintf(f->explained, sizeof f->explained,
             "transport: %s (%s)\nwriters: %u of %u ranks\nwindow: %llu bytes\nstripe: %llu "
             "bytes (%s)\nnodes: %u, segments of %llu bytes\n",
             io_transport_names[plan->transport], plan->reason, plan->n_writers, w->size,
             (unsigned long long)plan->window_bytes, (unsigned long long)plan->stripe_bytes,
             f->token.place, w->n_nodes, (unsigned long long)w->segment_bytes);
}

static void explain_without_windows(brg_file *f, enum io_transport transport, const char *why,
                                    uint32_t writers)
{
    const struct io_world *w = f->world;
    snprintf(f->explained, sizeof f->explained,
             "transport: %s (%s)\nwriters: %u of %u ranks\nstripe: %llu bytes (%s)\nnodes: %u\n",
             io_transport_names[transport], why, writers, w->size,
             (unsigned long long)f->token.stripe_bytes, f->token.place, w->n_nodes);
}

static void explain_early(brg_file *f, enum file_action action, uint64_t run)
{
    const char *by_rule = plan_is_long(run) ? "runs are long, and there are few ranks"
                                            : "runs are short, and there are few ranks";
    char why[PLAN_WHY], whole[PLAN_WHY + 40];
    plan_why(why, &f->hints, by_rule, file_past(f, action, run));
    snprintf(whole, sizeof whole, "%s: each rank moves its own bytes", why);
    explain_without_windows(f, IO_DIRECT, whole, f->world->size);
}

void file_move_nothing(brg_file *f, enum file_action action, const struct io_extent *e)
{
    explain_early(f, action, e->run);
    if (action == FILE_WRITE && e->low < e->high) {
        file_early_end(f, FILE_EARLY_KEEP, e->high);
        file_early_start(f, e);
        file_cost_call(f, IO_DIRECT, e->high - e->low, e->run, f->early.began_ns);
    }
}

static struct io_call call_of(brg_file *f, const struct io_request *request, uint64_t high)
{
    return (struct io_call){.world = f->world,
                            .store = f->store,
                            .drain = f->drain,
                            .size = high > f->size ? high : f->size,
                            .request = request,
                            .overlap = &f->overlap,
                            .progress = f->progress,
                            .progress_context = f->progress_context};
}

int file_move(brg_file *f, enum file_action action, const struct io_request *request,
              const int64_t *early, struct io_extent extent)
{
    struct io_world *w = f->world;
    struct plan_ranks ranks = move_ranks(w);
    struct plan_place place = move_place(&f->token, action == FILE_WRITE);
    uint64_t began_ns = brg_clock_ns();
    struct io_plan plan;
    struct io_call call = call_of(f, request, extent.high);
    call.plan = &plan;
    int rc = 0;
    ranks.past = file_past(f, action, extent.run);
    if (action == FILE_READ && file_early_scattered(f, &extent, early, &rc)) {
        explain_early(f, action, extent.run);
        return rc;
    }
    plan_make(&plan, &f->hints, &place, &extent, &ranks);
    explain(f, &plan);
    if (action == FILE_READ)
        return move_read(&call, &f->failure);
    if (extent.low < extent.high && f->carried)
        rc = file_end_carrying(f);
    rc = rc ? rc : let_arrive(f, extent.low, extent.high);
    reach(f, extent.low, extent.high);
    if (!rc)
        rc = move_write(&call, &f->failure);
    if (!rc && extent.low < extent.high)
        f->size = call.size;
    if (!rc)
        file_cost_call(f, plan.transport, extent.high - extent.low, extent.run, began_ns);
    return rc;
}

/* ---- carried to rank 0 ---- */

enum carry_load file_carry_put(brg_file *f, enum file_action action,
                               const struct io_request *request)
{
    const struct io_hints *hints = &f->hints;
    struct io_request nothing;
    if (hints->transport != IO_AUTO || hints->writers || hints->async || hints->direct_io == 1 ||
        f->token.layout != IO_SHARED || !(f->token.flags & BRG_WRITE))
        return CARRY_TOO_MUCH;
    request_none(&nothing);
    return carry_put(f->world, action == FILE_WRITE ? request : &nothing, f->token.lock_bytes != 0);
}

/* Where nodes write in turns, what lies in one turn's stretch has one writer. */
int file_is_carried(const brg_file *f, enum carry_load load, const struct io_extent *extent)
{
    uint64_t unit = f->token.lock_bytes;
    return load == CARRY_LITTLE ||
           (load == CARRY_MUCH && unit && extent->low / unit == (extent->high - 1) / unit);
}

static void explain_carried(brg_file *f, const char *way)
{
    char why[PLAN_WHY];
    snprintf(why, sizeof why, "there are few bytes: carried %s rank 0 as ranks meet", way);
    explain_without_windows(f, IO_SIMPLE, why, 1);
}

int file_move_carried(brg_file *f, const struct io_request *request, const struct io_extent *extent)
{
    struct io_call call = call_of(f, request, extent->high);
    explain_carried(f, "to");
    int rc = f->carried ? 0 : let_arrive(f, extent->low, extent->high);
    if (rc)
        return rc;
    reach(f, extent->low, extent->high);
    file_tell(f, 0, request->bytes);
    carry_write(&call, extent->grain, &f->early.failure);
    if (f->world->rank != 0) /* a stream of its checksums may end where the file did; where bytes
                                met what was written before, all streams ended as that arrived */
        store_end_call(f->store, call.size, &f->early.failure);
    if (!f->early.failure.code)
        file_tell(f, request->bytes, request->bytes);
    f->size = call.size;
    return 0;
}

/* ---- carried from rank 0 ---- */

int file_is_spread(const brg_file *f, const struct io_extent *extent)
{
    return f->hints.transport == IO_AUTO && !f->hints.writers && f->token.flags & BRG_READ &&
           carry_reads(f->world, extent->low, extent->high);
}

int file_spread(brg_file *f, const struct io_extent *extent)
{
    struct io_call call = call_of(f, NULL, 0);
    return carry_spread(&call, extent->low, extent->high, &f->failure);
}

int file_take_spread(brg_file *f, const struct io_request *request, const struct io_extent *extent)
{
    struct io_call call = call_of(f, request, 0);
    explain_carried(f, "from");
    if (carry_take(&call, extent->low))
        return world_failure(f->world, &f->failure);
    file_tell(f, request->bytes, request->bytes);
    return 0;
}
