/* Opening, committing and closing a file. */
#include "io/file_array.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "world/fault.h"

static int bad_flags(unsigned flags)
{
    unsigned known = BRG_READ | BRG_WRITE | BRG_CREATE | BRG_EXCLUSIVE;
    return (flags & ~known) || !(flags & BRG_READ) == !(flags & BRG_WRITE) ||
           (flags & (BRG_CREATE | BRG_EXCLUSIVE) && !(flags & BRG_WRITE)) ||
           (flags & BRG_EXCLUSIVE && !(flags & BRG_CREATE));
}

static int read_hints(struct io_hints *hints, const char *path, unsigned flags, const char *info,
                      struct brg_error *err)
{
    if (!path)
        return brg_error_set(err, -EINVAL, "cannot open a file without a name: path is NULL");
    if (bad_flags(flags))
        return brg_error_set(err, -EINVAL,
                             "cannot open %s with flags %#x: it takes BRG_READ, or BRG_WRITE, with "
                             "BRG_CREATE and BRG_EXCLUSIVE if wanted",
                             path, flags);
    hints_default(hints);
    int rc = hints_parse(hints, info, err);
    return rc ? rc : hints_parse_environment(hints, getenv("BRIGADE_IO"), path, err);
}

/* FNV-1a, 62 bits. */
static int64_t hash_of(const char *path, unsigned flags)
{
    uint64_t hash = 0xcbf29ce484222325u ^ flags;
    for (; path && *path; path++)
        hash = (hash ^ (unsigned char)*path) * 0x100000001b3u;
    return (int64_t)(hash >> 2);
}

/* What rank 0 finds out for all. */
struct found {
    struct io_hints hints;
    struct store_token token;
    struct found_index arrays;
    int page;
};

/* Agrees on a failure, and that all ranks open the same file for the same: a rank that does not
 * would have its bytes in another rank's file. Named is the lowest that differs from rank 0. Then
 * all have what rank 0 found. */
static int agree_on_file(struct io_world *w, const char *path, unsigned flags, struct found *found,
                         struct brg_error *failure)
{
    enum {
        FAILED,
        LEAST,
        MOST,
        N
    };
    int64_t hash = hash_of(path, flags), v[N] = {world_failure_key(w, failure), hash, -hash};
    int64_t first = hash;
    struct brg_error err;
    int rc = world_share_and_least(w, found, sizeof *found, 0, v, N, &err);
    if (!rc && v[FAILED] == INT64_MAX && v[LEAST] != -v[MOST])
        rc = world_share(w, &first, sizeof first, 0, &err);
    if (rc) {
        *failure = err;
        return rc;
    }
    if (v[FAILED] != INT64_MAX)
        return world_failure_of(w, v[FAILED], failure);
    if (v[LEAST] == -v[MOST])
        return 0;
    if (hash != first) {
        snprintf(failure->path, sizeof failure->path, "%s", path);
        brg_error_set(failure, -EINVAL,
                      "%s, flags %#x: another rank opens another file, or this one with other "
                      "flags; path and flags must be the same on every rank",
                      path, flags);
    }
    return world_failure(w, failure);
}

/* What may fail on one rank alone comes before the ranks agree. */
static int take_memory(brg_file *f, struct brg_error *err)
{
    f->spare = malloc(sizeof *f->spare);
    f->store = store_new();
    f->drain = drain_new();
    return f->spare && f->store && f->drain ? 0
                                            : brg_error_set(err, -ENOMEM, "no memory for a file");
}

/* On rank 0. */
static void find(brg_file *f, const char *path, unsigned flags, struct found *found)
{
    found->hints = f->hints;
    f->page = found->page = flags & BRG_WRITE ? world_take_page(f->world) : -1;
    char *page = world_page(f->world, f->page);
    if (store_prepare(path, flags, &f->hints, page, &f->token, &f->failure))
        return;
    store_begin(f->store, &f->token, &f->hints, 0, page);
    arrays_look(f, &found->arrays);
    found->token = f->token;
}

static int open_file(brg_file *f, uintptr_t comm, const char *path, unsigned flags,
                     const char *info, struct brg_error *err)
{
    struct found found;
    struct brg_error *failure = &f->failure;
    memset(&found, 0, sizeof found);
    int rc = read_hints(&f->hints, path, flags, info, failure);
    int world = world_open(comm, f->hints.share, f->hints.segment_bytes, &f->world, err);
    if (world)
        return world;
    io_fault_start(f->world->rank);
    if (!rc)
        rc = take_memory(f, failure);
    if (!rc && f->world->rank == 0)
        find(f, path, flags, &found);
    rc = agree_on_file(f->world, path, flags, &found, failure);
    if (!rc) {
        f->hints = found.hints;
        f->token = found.token;
        f->page = found.page;
        f->size = flags & BRG_CREATE ? 0 : found.token.size;
        if (f->world->rank != 0)
            store_begin(f->store, &f->token, &f->hints, f->world->rank,
                        world_page(f->world, f->page));
        drain_begin(f->drain, f->store, &f->hints);
        rc = arrays_load(f, &found.arrays);
    }
    if (rc && err)
        *err = *failure;
    return rc;
}

/* Nobody writes any more: all have agreed on closing, on a commit, or on a failure. */
static void leave(brg_file *f)
{
    if (f->world->rank == 0)
        world_give_page(f->world, f->page);
    world_close(f->world);
}

int brg_file_open_handle(uintptr_t comm, const char *path, unsigned flags, const char *info,
                         brg_file **out, struct brg_error *err)
{
    brg_file *f = calloc(1, sizeof *f);
    if (!f)
        return brg_error_set(err, -ENOMEM, "no memory for a file");
    f->page = -1;
    int rc = open_file(f, comm, path, flags, info, err);
    if (rc == 0) {
        *out = f;
        return 0;
    }
    if (err && !err->path[0])
        snprintf(err->path, sizeof err->path, "%s", f->token.path[0] ? f->token.path : path);
    drain_close(f->drain);
    free(f->spare);
    if (f->store) {
        if (f->world->rank == 0)
            store_discard(f->store);
        store_close(f->store);
    }
    arrays_destroy(f);
    if (f->world)
        leave(f);
    free(f);
    return rc;
}

int brg_file_open_alone(const char *path, unsigned flags, const char *info, brg_file **f,
                        struct brg_error *err)
{
    return brg_file_open_handle(0, path, flags, info, f, err);
}

int brg_file_open_world(const char *path, unsigned flags, const char *info, brg_file **f,
                        struct brg_error *err)
{
    const struct mpi_interface *mpi;
    int rc = mpi_join(&mpi, err);
    return rc ? rc : brg_file_open_handle(mpi->world, path, flags, info, f, err);
}

int brg_file_open_fortran(int32_t comm, const char *path, unsigned flags, const char *info,
                          brg_file **f, struct brg_error *err)
{
    const struct mpi_interface *mpi;
    int rc = mpi_join(&mpi, err);
    return rc ? rc : brg_file_open_handle(mpi->from_fortran(comm), path, flags, info, f, err);
}

void brg_file_on_progress(brg_file *f, brg_progress *progress, void *context)
{
    f->progress = progress;
    f->progress_context = context;
}

uint64_t brg_file_size(const brg_file *f)
{
    return f->size;
}

int brg_file_close(brg_file *f, struct brg_error *err)
{
    struct io_request nothing;
    request_none(&nothing);
    int rc = file_finish_request(f, err);
    if (!rc && !f->failure.code && !f->committed) /* after a commit nobody needs to be served */
        rc = file_meet(f, FILE_CLOSE, &nothing, err);
    drain_close(f->drain);
    file_busy(f, 0);
    if (!f->committed && f->hints.async) {
        /* Nobody's thread may still make files when rank 0 removes them. */
        int64_t none = 0;
        world_minimum(f->world, &none, 1, &f->failure);
    }
    if (!f->committed && f->world->rank == 0)
        store_discard(f->store);
    store_close(f->store);
    arrays_destroy(f);
    leave(f);
    free(f->spare);
    free(f);
    return rc;
}

const char *brg_file_explain(brg_file *f)
{
    return f->explained;
}
