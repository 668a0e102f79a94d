/* Every rank meets the others with its request: what is done, and when it has been agreed on. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "io/file_array.h"
#include "io/file_move.h"

int file_none(struct brg_error *err)
{
    return brg_error_set(err, -EBADF, "no file is open: opening it failed, or was not asked for");
}

/* What is the same on every rank, and known without the others. */
static int fail_at_once(const brg_file *f, enum file_action action, struct brg_error *err)
{
    if (!f)
        return file_none(err);
    if (f->failure.code && err)
        *err = f->failure;
    if (f->failure.code)
        return f->failure.code;
    if (action == FILE_CLOSE)
        return 0;
    if (f->committed)
        return brg_error_set(err, -EBADF, "%s was committed already: only close may follow",
                             f->token.path);
    if (f->request)
        return brg_error_set(err, -EBUSY, "%s is being committed: wait for its request first",
                             f->token.path);
    return 0;
}

static int refuse(const brg_file *f, enum file_action action, struct brg_error *err)
{
    if (action == FILE_CLOSE)
        return 0;
    if ((action == FILE_READ) != !!(f->token.flags & BRG_READ))
        return brg_error_set(err, -EBADF, "%s was opened for %s", f->token.path,
                             f->token.flags & BRG_READ ? "reading" : "writing");
    return 0;
}

int file_refuse(const brg_file *f, enum file_action action, struct brg_error *err)
{
    int rc = fail_at_once(f, action, err);
    return rc ? rc : refuse(f, action, err);
}

static int name_in(const brg_file *f, struct brg_error *failure)
{
    if (failure->code && !failure->path[0])
        memcpy(failure->path, f->token.path, sizeof failure->path - 1);
    return failure->code;
}

void file_name_failure(brg_file *f)
{
    name_in(f, &f->failure);
}

/* ---- a meeting ---- */

enum {
    ACTION = EARLY_VALUES,
    LATEST,
    EXTENT,
    REFUSED = EXTENT + EXTENT_VALUES, /* rank of the lowest that refuses what it was asked */
    HAS_ARRAYS,                       /* that has arrays, or attributes of the file, */
    OWN_BYTES,                        /* and that writes bytes at offsets of its own */
    PAST,                             /* reading: the lowest byte behind the end */
    DEFINED,
    TOLD, /* what the rank has defined, and its complement: where all say the same they agree */
    TOLD_NOT,
    INDEX_LEFT,
    INDEX_AT,
    INDEX_BYTES,
    UNSUMMED,
    BROUGHT, /* all arrays that this rank has kept, if any, are in its request */
    CARRIED, /* writing: whether what this rank brings is in its box */
    FLUSHED, /* committing: nothing of this rank need be flushed any more */
    N_VALUES
};

static void fill_values(brg_file *f, enum file_action action, const struct io_request *r,
                        int refused, int64_t *v)
{
    int own = action == FILE_WRITE && r->bytes && !f->arrays;
    struct io_cursor cursor;
    file_early_say(f, v);
    v[ACTION] = action;
    v[LATEST] = -(int64_t)action;
    extent_say(r, v + EXTENT);
    v[REFUSED] = refused ? f->world->rank : INT64_MAX;
    v[HAS_ARRAYS] = f->arrays ? f->world->rank : INT64_MAX;
    v[OWN_BYTES] = own ? f->world->rank : INT64_MAX;
    v[DEFINED] = arrays_defined(f);
    v[TOLD] = arrays_told(f);
    v[TOLD_NOT] = ~v[TOLD];
    v[BROUGHT] = kept_is_brought(f);
    v[INDEX_LEFT] = -f->index.left;
    v[INDEX_AT] = -(int64_t)f->index.at;
    v[INDEX_BYTES] = -(int64_t)f->index.bytes;
    v[UNSUMMED] = -store_has_unsummed(f->store);
    v[CARRIED] = file_carry_put(f, refused ? FILE_CLOSE : action, r);
    v[FLUSHED] = f->world->n_nodes > 1 && !refused && file_flush_early(f, action);
    v[PAST] = INT64_MAX;
    if (action == FILE_READ && r->high > f->size) {
        cursor_seek(&cursor, r, f->size);
        v[PAST] = (int64_t)cursor_at(&cursor);
    }
}

static int end_before(brg_file *f, int64_t past, int mine, struct brg_error *err)
{
    int64_t rank = mine ? (int64_t)f->world->rank : INT64_MAX;
    int rc = world_minimum(f->world, &rank, 1, &f->failure);
    if (rc)
        return rc;
    brg_error_set(err, -ENODATA, "%s ends at byte %llu: there is no byte %lld", f->token.path,
                  (unsigned long long)f->size, (long long)past);
    err->rank = (int)rank;
    err->offset = past;
    return err->code;
}

/* The index of arrays will lie upon bytes that some rank brings, and that one cannot know it. */
static int is_mixed(const int64_t *v)
{
    return v[HAS_ARRAYS] != INT64_MAX && v[OWN_BYTES] != INT64_MAX;
}

/* Nothing is done now. */
static int is_refused(const int64_t *v)
{
    return v[REFUSED] != INT64_MAX || v[EARLY_FAILED] != INT64_MAX || is_mixed(v);
}

/* The same on every rank, without another meeting. */
static int refuse_mixed(const brg_file *f, const int64_t *v, struct brg_error *err)
{
    brg_error_set(err, -EINVAL,
                  "%s: rank %lld writes bytes at offsets of its own, and rank %lld has arrays or "
                  "attributes; arrays need a file to themselves",
                  f->token.path, (long long)v[OWN_BYTES], (long long)v[HAS_ARRAYS]);
    err->rank = (int)v[OWN_BYTES];
    return err->code;
}

static int is_carried(const brg_file *f, const int64_t *v)
{
    struct io_extent extent = extent_heard(v + EXTENT);
    return v[ACTION] == FILE_WRITE && !v[EARLY_DONE] && !is_refused(v) &&
           file_is_carried(f, v[CARRIED], &extent);
}

static int is_spread(const brg_file *f, const int64_t *v)
{
    struct io_extent extent = extent_heard(v + EXTENT);
    return v[ACTION] == FILE_READ && !v[EARLY_DONE] && !is_refused(v) && v[PAST] == INT64_MAX &&
           file_is_spread(f, &extent);
}

/* All have come to commit. */
static int is_end(const int64_t *v)
{
    return v[ACTION] == FILE_COMMIT && v[LATEST] == -FILE_COMMIT && !is_refused(v);
}

/* And what they wrote is flushed. */
static int is_flushed(const int64_t *v)
{
    return is_end(v) && v[FLUSHED];
}

/* Something is still written, after this rank may have let go of the file. */
static int goes_on(const brg_file *f, const int64_t *v)
{
    return f->world->n_nodes > 1 ? !is_flushed(v) : !is_end(v) || v[INDEX_LEFT];
}

static void hear_of_commit(brg_file *f, const int64_t *v)
{
    f->index = (struct file_index){.left = v[INDEX_LEFT] != 0,
                                   .at = (uint64_t)-v[INDEX_AT],
                                   .bytes = (uint64_t)-v[INDEX_BYTES],
                                   .behind = f->size};
    if (f->index.bytes && f->size < f->index.at + f->index.bytes)
        f->size = f->index.at + f->index.bytes;
    f->flushed = is_flushed(v);
    store_hear_unsummed(f->store, v[UNSUMMED] && !(f->flushed && f->carried));
}

/* `alone` of a meeting. */
static int take_along(void *file, int64_t *v)
{
    int unsummed = 0, rc = file_early_judge(file, v);
    struct io_extent extent = extent_heard(v + EXTENT);
    if (!rc && is_carried(file, v))
        rc = carry_bring(((brg_file *)file)->world);
    if (!rc && is_spread(file, v))
        rc = file_spread(file, &extent);
    if (!rc && is_flushed(v))
        rc = file_join_pages(file, &unsummed);
    if (unsummed)
        v[UNSUMMED] = -1;
    return rc;
}

static int move(brg_file *f, enum file_action action, const struct io_request *request,
                const int64_t *v)
{
    struct io_extent extent = extent_heard(v + EXTENT);
    if (is_carried(f, v))
        return file_move_carried(f, request, &extent);
    if (is_spread(f, v))
        return file_take_spread(f, request, &extent);
    if (!v[EARLY_DONE])
        return file_move(f, action, request, v, extent);
    file_move_nothing(f, action, &extent);
    return 0;
}

/* What has been agreed on is done. `mine`: the lowest byte past the end that this rank asks for. */
static int serve(brg_file *f, enum file_action action, const struct io_request *request,
                 const int64_t *v, int64_t mine, struct brg_error *refusal)
{
    struct brg_error *failure = &f->failure;
    enum file_action done = (enum file_action)v[ACTION];
    if (done == FILE_COMMIT && -v[LATEST] == FILE_CLOSE) {
        if (action == FILE_CLOSE)
            brg_error_set(failure, -ECANCELED, "%s was closed by one rank while others commit it",
                          f->token.path);
        return world_failure(f->world, failure);
    }
    if (done == FILE_DEFINE)
        return arrays_agree(f, action, (size_t)v[DEFINED], v[TOLD] == ~v[TOLD_NOT],
                            (enum file_action) - v[LATEST], refusal);
    if (v[PAST] != INT64_MAX)
        return end_before(f, v[PAST], mine == v[PAST], refusal);
    if (done == FILE_COMMIT)
        hear_of_commit(f, v);
    if (done == FILE_WRITE && v[TOLD] == ~v[TOLD_NOT])
        arrays_are_same(f, v[BROUGHT] != 0);
    if (done == FILE_WRITE || done == FILE_READ)
        return move(f, done, request, v);
    return 0;
}

int file_sees_all(const brg_file *f)
{
    return f->world->n_nodes == 1 && !f->hints.async && f->token.layout == IO_SHARED;
}

/* Some file systems tell only as a file is closed that what was written has no room, and where
 * nothing is synced that is the last chance to hear it before the file is published. */
static void let_go(brg_file *f, enum file_action action)
{
    if (action != FILE_COMMIT || !file_sees_all(f) || f->hints.sync || f->world->rank == 0 ||
        f->early.failure.code)
        return;
    file_remember_stream(f);
    store_let_go(f->store, &f->early.failure);
}

/* One meeting. *done becomes the action that was served. `refusal` (code 0: none) becomes that of
 * the lowest rank that has one; then nothing more is moved. */
static int meet_once(brg_file *f, enum file_action action, const struct io_request *request,
                     struct brg_error *refusal, enum file_action *done)
{
    int64_t v[N_VALUES];
    let_go(f, action);
    file_early_begin(f, action, request, refusal->code != 0);
    fill_values(f, action, request, refusal->code != 0, v);
    int64_t past = v[PAST];
    int rc = world_meet(f->world, v, N_VALUES, take_along, f, &f->failure);
    if (rc)
        return rc;
    if (goes_on(f, v))
        file_flushed_in_vain(f);
    *done = (enum file_action)v[ACTION];
    if (v[EARLY_FAILED] != INT64_MAX) {
        f->failure = f->early.failure;
        return world_failure_of(f->world, v[EARLY_FAILED], &f->failure);
    }
    if (is_refused(v))
        file_early_end(f, FILE_EARLY_DOUBT, 0);
    else if (*done != FILE_WRITE || !v[EARLY_DONE])
        file_early_end(f, FILE_EARLY_AGAIN, 0);
    if (v[REFUSED] != INT64_MAX)
        return world_failure_of(f->world, v[REFUSED], refusal);
    if (is_mixed(v))
        return refuse_mixed(f, v, refusal);
    return serve(f, action, request, v, past, refusal);
}

/* A write of others may have settled what this rank came for. */
static int is_done(const brg_file *f, enum file_action action, enum file_action done)
{
    return done == action || (action == FILE_DEFINE && arrays_are_settled(f));
}

/* Meets until what this rank came for has been done, with `refusal` to begin with. Closing goes on
 * whatever others refuse: they will close as well. */
static int meet(brg_file *f, enum file_action action, const struct io_request *request,
                struct brg_error *refusal, struct brg_error *err)
{
    enum file_action done = 0;
    int rc = fail_at_once(f, action, err);
    if (rc)
        return rc;
    if (!refusal->code)
        refuse(f, action, refusal);
    do {
        struct brg_error now = *refusal;
        rc = meet_once(f, action, request, &now, &done);
        name_in(f, &f->failure);
        if (name_in(f, &now) && action == FILE_CLOSE && !f->failure.code) {
            done = 0;
            rc = 0;
        }
        if (rc && err)
            *err = f->failure.code ? f->failure : now;
    } while (!rc && !is_done(f, action, done));
    return rc;
}

int file_meet(brg_file *f, enum file_action action, const struct io_request *request,
              struct brg_error *err)
{
    struct brg_error none = {.code = 0};
    return meet(f, action, request, &none, err);
}

int file_bring(brg_file *f, enum file_action action, struct io_request *request, int rc,
               struct brg_error *err)
{
    struct brg_error bad = {.code = 0};
    if (rc && err)
        bad = *err;
    else if (rc)
        brg_error_system(&bad, rc, "cannot use the arguments");
    if (rc)
        request_none(request);
    rc = meet(f, action, request, &bad, err);
    if (!rc && action == FILE_READ)
        request_repeat(request);
    request_destroy(request);
    return rc;
}
