/* Committing, at once or while the program goes on.
 *
 * A commit is steps; each is done by all ranks before any begins the next. What a step does on a
 * rank is done by the thread that drains the file's buffer, or at once where nobody wants to go on
 * meanwhile; the agreement between steps is made where the program calls.
 *
 * What costs is syncing, one after another. So where all ranks see what the others wrote, blocks
 * are read back first, and checksums are synced at the same time as what they are of. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "io/file_array.h"
#include "drain/pace.h"
#include "drain/yield.h"

/* How long a rank that waits for its own step lets others' failures go unheard. */
#define LISTEN_MS 200

static int flush(void *file, struct brg_error *err)
{
    brg_file *f = file;
    return store_flush(f->store, err);
}

/* Each node has told its own ranks of checksums, not yet the other nodes. */
static int has_pages(const brg_file *f)
{
    return f->page >= 0 && f->world->n_nodes > 1 && store_has_page(f->store);
}

static int leave_page(void *file, struct brg_error *err)
{
    brg_file *f = file;
    return store_page_leave(f->store, f->size, err);
}

/* n_ranks of them read back what is marked; of arrays, so is what rank 0 wrote of its own, and the
 * block in which the file ended before: a rank may have known that up to there. */
static int settle_of(brg_file *f, uint32_t n_ranks, struct brg_error *err)
{
    const struct file_index *index = &f->index;
    int rc = 0;
    if (index->bytes) {
        rc = store_mark(f->store, ARRAY_HEADER_BYTES, 0, err);
        rc = rc ? rc : store_mark(f->store, index->bytes, index->at, err);
        rc = rc || !index->behind ? rc : store_mark(f->store, 1, index->behind - 1, err);
    }
    return rc ? rc : store_settle(f->store, n_ranks, f->size, err);
}

static int settle(void *file, struct brg_error *err)
{
    brg_file *f = file;
    return settle_of(f, f->world->size, err);
}

/* A block or a few are read back by rank 0 alone rather than in a step of all. */
#define FEW_BYTES (UINT64_C(1) << 20)

static int is_settled_alone(const brg_file *f)
{
    return f->size <= FEW_BYTES;
}

static int settle_alone(brg_file *f, struct brg_error *err)
{
    int alone = f->world->rank == 0 && is_settled_alone(f) && store_is_unsummed(f->store);
    return alone ? settle_of(f, 1, err) : 0;
}

static int secure(void *file, struct brg_error *err)
{
    brg_file *f = file;
    int rc = settle_alone(f, err);
    return rc ? rc : store_secure(f->store, f->size, err);
}

void file_remember_stream(brg_file *f)
{
    struct hull *stream = &f->flushed_stream;
    if (!store_stream(f->store, &stream->low, &stream->high))
        *stream = (struct hull){0, 0};
}

int file_flush_early(brg_file *f, enum file_action action)
{
    struct brg_error *failure = &f->early.failure;
    int alone = f->carried && f->world->rank == 0, has_index = f->arrays && f->arrays->changed;
    if (action != FILE_COMMIT || !f->at_once || f->hints.async || has_index || failure->code ||
        f->token.layout != IO_SHARED) /* a part that was flushed is not written to any more */
        return 0;
    file_remember_stream(f);
    if (!alone)
        return store_flush(f->store, failure) == 0;
    if (store_has_unsummed(f->store) && (store_page_unsummed(f->store, f->size) > FEW_BYTES ||
                                         store_settle(f->store, 1, f->size, failure)))
        return 0;
    if (store_as_it_lies(&f->token)) /* its checksums are there, and are changed when all agree */
        return 1;
    return store_secure(f->store, f->size, failure) == 0;
}

int file_end_carrying(brg_file *f)
{
    f->carried = 0;
    if (f->token.flags & BRG_CREATE)
        return 0;
    if (!store_show(f->store, &f->failure) && has_pages(f))
        store_page_leave(f->store, f->size, &f->failure);
    return world_failure(f->world, &f->failure);
}

void file_flushed_in_vain(brg_file *f)
{
    struct hull *stream = &f->flushed_stream;
    if (!f->early.failure.code)
        store_mark(f->store, stream->high - stream->low, stream->low, &f->early.failure);
    *stream = (struct hull){0, 0};
}

/* Where nothing is synced, only rank 0 has anything to secure, and does it here. */
static int is_secured_alone(const brg_file *f)
{
    return file_sees_all(f) && !f->hints.sync;
}

static int publish(void *file, struct brg_error *err)
{
    brg_file *f = file;
    int rc = is_secured_alone(f) ? settle_alone(f, err) : 0;
    return rc || f->world->rank != 0 ? rc : store_publish(f->store, f->size, err);
}

static drain_job *const apart[] = {flush, leave_page, settle, publish, NULL};
static drain_job *const together[] = {settle, secure, publish, NULL};

static int is_ended(const struct brg_request *request)
{
    return request->steps[request->step] == NULL;
}

/* The next step from `step` on of this file's commit that has something to do. */
static unsigned next_step(const brg_file *f, const struct brg_request *request, unsigned step)
{
    int known = !f->hints.async && !store_is_unsummed(f->store);
    if (request->steps[step] == leave_page && (known || !has_pages(f)))
        step++;
    if (request->steps[step] == settle &&
        (known || (request->steps == together && is_settled_alone(f))))
        step++;
    if (request->steps[step] == secure && is_secured_alone(f))
        step++;
    return step;
}

void file_busy(brg_file *f, int busy)
{
    if (f->busy != busy)
        yield_busy(busy - f->busy);
    f->busy = busy;
}

static void finish(struct brg_request *request, const struct brg_error *failure)
{
    brg_file *f = request->file;
    file_name_failure(f);
    request->outcome = *failure;
    request->file = NULL;
    f->request = NULL;
    f->committed = failure->code == 0;
    file_busy(f, 0);
    size_t used = strlen(f->explained);
    drain_explain(f->drain, f->explained + used, sizeof f->explained - used);
}

/* What this rank's calls tell since they were judged last. Where bytes are written by few ranks,
 * those are late, and the others wait for them: so all hear of it. */
static int suffers(struct brg_request *request)
{
    struct watch_sums sums;
    yield_sums(&sums);
    enum pace_verdict verdict = pace_judge(&request->mark, &sums, request->file->hints.slowdown);
    if (verdict != PACE_UNKNOWN)
        request->mark = sums;
    return verdict == PACE_SLOW;
}

/* Of an agreement. */
enum {
    ENDED,
    NO_FAILURE,
    NO_HARM,
    COST,
    SUMMED, /* 0: what nodes know of checksums does not agree */
    N
};

_Static_assert(STORE_PAGE_VALUES <= WORLD_MANY, "what a page says goes in one message");

int file_join_pages(brg_file *f, int *unsummed)
{
    int64_t page[STORE_PAGE_VALUES];
    if (!has_pages(f) || f->carried)
        return 0;
    int n = store_page_say(f->store, f->size, page);
    int rc = world_least(f->world, f->world->leaders, page, n);
    *unsummed = !rc && store_page_hear(f->store, f->size, page);
    return rc;
}

/* In the agreement, when all has been written. */
static int join_pages(void *running, int64_t *least)
{
    struct brg_request *request = running;
    int unsummed = 0;
    if (!least[ENDED] || !least[NO_FAILURE] || request->steps[request->step] != flush)
        return 0;
    int rc = file_join_pages(request->file, &unsummed);
    if (unsummed)
        least[SUMMED] = 0;
    return rc;
}

/* One agreement: goes to the next step if this one is done everywhere. */
static void advance(struct brg_request *request, int wait_ms)
{
    brg_file *f = request->file;
    int ended = drain_ended(f->drain, wait_ms, &f->failure);
    int64_t v[N] = {ended != 0, ended >= 0, !suffers(request), file_cost_key(f, request->began_ns),
                    1};
    int rc = world_meet(f->world, v, N, join_pages, request, &f->failure);
    if (!rc && !v[NO_FAILURE])
        rc = world_failure(f->world, &f->failure);
    if (!rc && !v[NO_HARM])
        drain_hear(f->drain);
    if (!rc && !v[SUMMED])
        store_hear_unsummed(f->store, 1);
    if (!rc && v[ENDED])
        request->step = next_step(f, request, request->step + 1);
    if (!rc && v[ENDED] && !is_ended(request))
        drain_run(f->drain, request->steps[request->step], f, request->behind);
    if (!rc && is_ended(request))
        file_cost_note(f, v[COST]);
    if (rc || is_ended(request))
        finish(request, &f->failure);
}

static int outcome_of(const struct brg_request *request, struct brg_error *err)
{
    if (request->outcome.code && err)
        *err = request->outcome;
    return request->outcome.code;
}

static int start(brg_file *f, struct brg_request *request, int behind, struct brg_error *err)
{
    int rc = arrays_commit(f, err);
    if (rc)
        return rc;
    *request = (struct brg_request){.file = f,
                                    .steps = file_sees_all(f) ? together : apart,
                                    .behind = behind,
                                    .began_ns = brg_clock_ns()};
    request->step = next_step(f, request, f->flushed);
    f->request = request;
    yield_sums(&request->mark);
    if (behind)
        file_busy(f, 1);
    drain_run(f->drain, request->steps[request->step], f, behind);
    return 0;
}

int brg_file_commit(brg_file *f, struct brg_error *err)
{
    struct brg_request request;
    if (f)
        f->at_once = 1;
    int rc = start(f, &request, 0, err);
    if (rc)
        return rc;
    while (request.file)
        advance(&request, LISTEN_MS);
    return outcome_of(&request, err);
}

int brg_file_commit_start(brg_file *f, brg_request **out, struct brg_error *err)
{
    int rc = f ? start(f, f->spare, 1, err) : file_none(err);
    if (rc)
        return rc;
    *out = f->spare;
    f->spare = NULL;
    return 0;
}

static int no_request(struct brg_error *err)
{
    return brg_error_set(err, -EBADF, "no commit is under way: none was begun, or it is done");
}

int brg_request_test(brg_request *request, int *done, struct brg_error *err)
{
    *done = 1;
    if (!request)
        return no_request(err);
    if (request->file) {
        yield_ours(1);
        advance(request, 0);
        yield_ours(0);
    }
    *done = request->file == NULL;
    if (!*done)
        return 0;
    int rc = outcome_of(request, err);
    free(request);
    return rc;
}

int brg_request_wait(brg_request *request, struct brg_error *err)
{
    if (!request)
        return no_request(err);
    while (request->file)
        advance(request, LISTEN_MS);
    int rc = outcome_of(request, err);
    free(request);
    return rc;
}

int file_finish_request(brg_file *f, struct brg_error *err)
{
    struct brg_request *request = f->request;
    if (!request)
        return 0;
    while (request->file)
        advance(request, LISTEN_MS);
    return outcome_of(request, err);
}
