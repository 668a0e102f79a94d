/* See call.h. The ranks meet once to agree on who does the call and on its extent; then it is moved
 * as a call of libbrigade_io's is: the same plan, the same transports, into the file in place.
 *
 * A rank that would move its own bytes whatever the others ask for moves them before they meet.
 * MPI leaves open what comes of bytes that two ranks write in one call, and where a rank cannot
 * go on here, the same bytes are written once more by MPI. So a call of long runs costs one
 * meeting. */
#include "mpiio/call.h"

#include <errno.h>
#include <string.h>

#include "move/alone.h"
#include "move/early.h"
#include "move/plan_own.h"
#include "mpiio/device.h"
#include "mpiio/late.h"
#include "mpiio/report.h"
#include "mpiio/straight.h"
#include "type/decode.h"

/* How far the call has come on this rank. */
struct progress {
    int64_t etypes; /* of the file's pointer before it */
    uint64_t asked, moved;
    uint64_t began_ns;
};

/* This rank's part of a call. */
struct share {
    struct io_request request;
    struct progress progress;
    const char *why;    /* NULL; or why it cannot be done here */
    struct early early; /* how it may be moved without the others */
    int is_moved;       /* it was, and what was moved is all that there is */
};

static const char *first_of(const struct call *call, const struct type *type)
{
    return (const char *)((uintptr_t)call->buf + (uint64_t)type_true_lb(type));
}

static int is_null(const char *first)
{
    return (uintptr_t)first < CALL_LOWEST_ADDRESS;
}

static const char of_device[] = "memory of a device";

/* Its driver's library may have come since the file was opened. */
static int is_of_device(const char *first)
{
    device_look();
    return device_has(first);
}

static const char *ask(struct file *f, const struct call *call, struct share *share)
{
    struct type *type = NULL;
    const char *why = NULL;
    int64_t *etypes = &share->progress.etypes;
    *etypes = call->offset;
    if (!f->has_view)
        return "a view that Brigade cannot read";
    if (!call->at && late_position(f, etypes))
        return "MPI does not tell the position";
    if (call->count < 0 || *etypes < 0 || *etypes > INT64_MAX / (int64_t)f->view.etype_bytes)
        return "arguments that MPI refuses";
    if (type_decode(f->mpi->types, call->type, &type, NULL))
        return "a datatype that Brigade cannot read";
    int moves = call->count && type_size(type);
    if (moves && is_null(first_of(call, type)))
        why = "arguments that MPI refuses";
    else if (moves && is_of_device(first_of(call, type)))
        why = of_device;
    else if (request_of_view(&share->request, &f->view, (uint64_t)*etypes * f->view.etype_bytes,
                             type, (uint64_t)call->count, call->buf, NULL))
        why = "a view that ends before the data";
    else if ((uint64_t)*etypes * f->view.etype_bytes + share->request.bytes > f->most_bytes)
        why = "tiles of a view that lie in each other";
    else if (share->request.bytes % f->view.etype_bytes)
        why = "a part of an etype";
    share->progress.asked = share->request.bytes;
    type_release(type);
    return why;
}

/* ---- before the meeting ---- */

static void move_it(struct file *f, struct share *share, struct brg_error *failure)
{
    int rc = early_move(&share->early, &share->progress.moved, failure);
    if (!rc && share->early.share.writes && share->progress.moved && f->all.world->n_nodes > 1)
        file_show(f, f->all.store, failure);
    share->is_moved = 1;
}

/* Moves all that this rank asks for, if it may. */
static void move_early(struct file *f, const struct call *call, struct share *share,
                       struct brg_error *failure)
{
    struct plan_place place = move_place(&f->all.token, call->write);
    struct plan_ranks ranks = move_ranks(f->all.world);
    share->early = (struct early){.store = f->all.store,
                                  .request = &share->request,
                                  .rank = f->all.world->rank,
                                  .share = {.writes = call->write}};
    if (early_may(&share->early, &f->all.hints, &place, &ranks))
        move_it(f, share, failure);
}

/* ---- the meeting ---- */

enum {
    LEFT = EXTENT_VALUES,
    CAN = LEFT + LEFT_VALUES, /* of all ranks */
    SIZE,                     /* reading: less than 0 by the file's, as it is known */
    ALONE,                    /* -1: some rank has written without the others */
    EARLY,                    /* 1: all have moved all */
    FAILED,                   /* meanwhile */
    N_VALUES
};

/* The least of all ranks counts. */
enum {
    NOBODY, /* this rank cannot, and it is too long for MPI */
    PASSES, /* MPI can */
    DOES
};

static void fill_values(struct file *f, const struct call *call, struct share *share,
                        struct brg_error *failure, int64_t *v)
{
    struct io_request nothing;
    uint64_t bytes = 0;
    request_none(&nothing);
    extent_say(share->is_moved ? &nothing : &share->request, v);
    early_say_left(share->is_moved ? NULL : &share->early, v + LEFT);
    if (!share->why && !call->write && f->all.world->rank == 0 &&
        store_size(f->all.store, &bytes, NULL))
        share->why = "its size is not known";
    v[ALONE] = -(!share->why && file_show_written(f, call->write ? NULL : &bytes, failure));
    v[SIZE] = -(int64_t)bytes;
    v[CAN] = !share->why ? DOES : call->is_too_long ? NOBODY : PASSES;
    v[EARLY] = share->is_moved;
    v[FAILED] = world_failure_key(f->all.world, failure);
}

/* What is left after the meeting. */
static int move_rest(struct file *f, const struct call *call, struct share *share, const int64_t *v,
                     struct brg_error *failure)
{
    struct reach *r = &f->all;
    struct io_request nothing;
    struct io_world *w = r->world;
    struct io_extent extent = extent_heard(v);
    struct plan_ranks ranks = move_ranks(w);
    struct plan_place place = move_place(&r->token, call->write);
    struct io_plan plan;
    struct io_call move = {.world = w,
                           .plan = &plan,
                           .store = r->store,
                           .drain = r->drain,
                           .request = share->is_moved ? &nothing : &share->request,
                           .any = 1};
    if (!call->write)
        extent_cut(&extent, (uint64_t)-v[SIZE]);
    move.size = extent.high;
    request_none(&nothing);
    if (early_is_scattered(&share->early, v + LEFT, &r->hints, &place, &extent, &ranks)) {
        if (!share->is_moved)
            move_it(f, share, failure);
        return world_failure(w, failure);
    }
    if (!call->write && !share->is_moved)
        request_clip(&share->request, (uint64_t)-v[SIZE]);
    if (!share->is_moved)
        share->progress.moved = share->request.bytes;
    plan_make(&plan, &r->hints, &place, &extent, &ranks);
    int rc = call->write ? move_write(&move, failure) : move_read(&move, failure);
    /* Where several nodes have the file open, what one wrote is seen by another when the first has
     * closed it and the other opens it again. */
    if (!rc && call->write && w->n_nodes > 1) {
        file_show(f, r->store, failure);
        rc = world_failure(w, failure);
    }
    return rc;
}

static int move_pointer(struct file *f, const struct call *call, const struct progress *progress)
{
    uint64_t etypes = progress->asked / f->view.etype_bytes;
    if (call->at || !etypes)
        return 0;
    return late_seek(f, progress->etypes + (int64_t)etypes);
}

/* The call is done here, and ended as `rc` says. Local. */
static void finish(struct file *f, const struct call *call, const struct progress *progress, int rc,
                   struct brg_error *failure, uint64_t *moved, int *code)
{
    if (!rc && move_pointer(f, call, progress))
        rc = failure->code = -EIO;
    *moved = rc ? 0 : progress->moved;
    *code = rc ? late_raise(f, rc) : 0;
    report_done(call->write, *moved, progress->began_ns, rc ? failure->text : NULL);
}

/* Why all its calls are left to MPI, known without the others; or NULL. */
static const char *left_to_mpi(const struct file *f, const struct call *call)
{
    if (f->passes)
        return f->passes;
    if (!(call->write ? f->can_write : f->can_read))
        return "the file is not open for that";
    if (f->atomic)
        return "atomic mode";
    return f->foreign ? "a data representation other than native" : NULL;
}

int call_together(struct file *f, const struct call *call, uint64_t *moved, int *code)
{
    struct share share = {.why = left_to_mpi(f, call), .progress = {.began_ns = report_now()}};
    struct brg_error failure = {.rank = -1, .offset = -1};
    int64_t v[N_VALUES];
    if (share.why || file_reach(f)) {
        report_passed(share.why ? share.why : f->passes);
        return 0;
    }
    request_none(&share.request);
    share.why = f->all.unable ? "it cannot be opened beside MPI" : ask(f, call, &share);
    if (!share.why)
        move_early(f, call, &share, &failure);
    fill_values(f, call, &share, &failure, v);
    int rc = world_minimum(f->all.world, v, N_VALUES, &failure);
    if (!rc && v[ALONE])
        file_look_again(f);
    if (!rc && v[CAN] != DOES) {
        report_passed(share.why ? share.why : "another rank cannot");
        request_destroy(&share.request);
        *code = v[CAN] == NOBODY ? late_raise(f, -E2BIG) : 0;
        return v[CAN] == NOBODY;
    }
    rc = rc ? rc : world_failure_of(f->all.world, v[FAILED], &failure);
    if (!rc && !v[EARLY])
        rc = move_rest(f, call, &share, v, &failure);
    request_destroy(&share.request);
    finish(f, call, &share.progress, rc, &failure, moved, code);
    return 1;
}

/* ---- without the others ---- */

/* What lies together in the file MPI does as well, if it has the file open. Short runs that lie
 * close are written by MPI: it reads what lies between them and writes that again, which is much
 * faster than run by run; but others may write there, and we do not. */
static int is_for_us(const struct file *f, const struct call *call, const struct io_request *r)
{
    struct request_spread s = request_spread(r);
    if (s.runs <= 1)
        return late_is_ours(f);
    return !call->write || plan_is_long(s.run) ||
           (s.runs == s.stretches && plan_is_apart(s.run, s.pitch));
}

static struct io_store *store_alone(const struct file *f)
{
    return f->late ? f->all.store : f->alone;
}

/* Reading has come to the end of the file. */
static void look_where_it_stops(struct file *f, const struct call *call, struct progress *progress)
{
    struct io_part run;
    int64_t etypes;
    if (f->mpi->files->stops_at_end && straight_run(f, call, &etypes, &run))
        progress->asked = progress->moved;
}

static int done_straight(struct file *f, const struct call *call, const struct io_part *run,
                         int64_t etypes, uint64_t *moved, int *code)
{
    struct progress progress = {.etypes = etypes, .asked = run->bytes, .began_ns = report_now()};
    struct brg_error failure; /* two KiB, which are filled where it fails */
    failure.code = 0;
    failure.text[0] = 0;
    file_use(f);
    int rc = straight_move(store_alone(f), call->write, run, &progress.moved, &failure);
    file_used(f);
    if (call->write && progress.moved)
        file_wrote(f);
    if (rc == -EFAULT && is_of_device(run->memory)) {
        report_passed(of_device);
        return 0;
    }
    if (!rc && progress.moved < progress.asked)
        look_where_it_stops(f, call, &progress);
    finish(f, call, &progress, rc, &failure, moved, code);
    return 1;
}

static int move_alone(struct file *f, const struct call *call, struct share *share,
                      struct brg_error *failure)
{
    struct io_store *store = store_alone(f);
    enum store_where where = alone_where(store, &share->request, 0, 1);
    if (!call->write)
        return alone_read(store, &share->request, where, &share->progress.moved, failure);
    share->progress.moved = share->request.bytes;
    return alone_write(store, &share->request, where, failure);
}

static int done_by_parts(struct file *f, const struct call *call, const char *why, int any,
                         uint64_t *moved, int *code)
{
    struct share share = {.why = why, .progress = {.began_ns = report_now()}};
    struct brg_error failure = {.rank = -1, .offset = -1};
    request_none(&share.request);
    if (!share.why)
        share.why = ask(f, call, &share);
    int here = !share.why && (any || is_for_us(f, call, &share.request)) && !file_reach_alone(f);
    if (here) {
        file_use(f);
        int rc = move_alone(f, call, &share, &failure);
        file_used(f);
        if (call->write && share.progress.moved)
            file_wrote(f);
        if (!rc && share.progress.moved < share.progress.asked)
            look_where_it_stops(f, call, &share.progress);
        finish(f, call, &share.progress, rc, &failure, moved, code);
    } else if (share.why)
        report_passed(share.why);
    request_destroy(&share.request);
    return here;
}

static int done_alone(struct file *f, const struct call *call, int any, uint64_t *moved, int *code)
{
    const char *why = left_to_mpi(f, call);
    struct io_part run;
    int64_t etypes;
    if (why || !straight_run(f, call, &etypes, &run))
        return done_by_parts(f, call, why, any, moved, code);
    return (any || late_is_ours(f)) && !file_reach_alone(f) &&
           done_straight(f, call, &run, etypes, moved, code);
}

static int done_in_turn(struct file *f, const struct call *call, int any, uint64_t *moved,
                        int *code)
{
    unsigned held;
    int holds = !call->at && late_hold_pointer(f, &held);
    int done = done_alone(f, call, any, moved, code);
    if (holds)
        late_release_pointer(held);
    return done;
}

int call_alone(struct file *f, const struct call *call, uint64_t *moved, int *code)
{
    return done_in_turn(f, call, 0, moved, code);
}

int call_at_once(struct file *f, const struct call *call, uint64_t *moved, int *code)
{
    return done_in_turn(f, call, 1, moved, code);
}
