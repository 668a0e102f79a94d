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
    hints_default(hints);
    if (!path)
        return brg_error_set(err, -EINVAL, "cannot open a file without a name: path is NULL");
    if (bad_flags(flags))
        return brg_error_set(err, -EINVAL,
                             "cannot open %s with flags %#x: it takes BRG_READ, or BRG_WRITE, with "
                             "BRG_CREATE and BRG_EXCLUSIVE if wanted",
                             path, flags);
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

/* What a rank says of the file as the world is opened. */
enum {
    FAILED,
    LEAST,
    MOST,
    N_WORDS
};

struct opening {
    brg_file *file;
    const char *path;
    unsigned flags;
    int rc; /* of the hints, so far */
    int64_t hash;
    struct found found;
    int64_t words[N_WORDS];
};

/* Agrees on a failure, and that all ranks open the same file for the same: a rank that does not
 * would have its bytes in another rank's file. Named is the lowest that differs from rank 0. */
static int agree_on_file(brg_file *f, const struct opening *o)
{
    struct brg_error *failure = &f->failure, err;
    int64_t first = o->hash;
    if (o->words[FAILED] != INT64_MAX)
        return world_failure_of(f->world, o->words[FAILED], failure);
    if (o->words[LEAST] == -o->words[MOST])
        return 0;
    if (world_share(f->world, &first, sizeof first, 0, &err)) {
        *failure = err;
        return err.code;
    }
    if (o->hash != first) {
        snprintf(failure->path, sizeof failure->path, "%s", o->path);
        brg_error_set(failure, -EINVAL,
                      "%s, flags %#x: another rank opens another file, or this one with other "
                      "flags; path and flags must be the same on every rank",
                      o->path, o->flags);
    }
    return world_failure(f->world, failure);
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
static void find(struct opening *o, struct io_world *w)
{
    brg_file *f = o->file;
    o->found.hints = f->hints;
    /* on several nodes, where there are sums */
    int apart = f->hints.checksums && !f->hints.async && f->hints.layout == IO_SHARED;
    f->page = o->found.page = o->flags & BRG_WRITE ? world_take_page(w, apart) : -1;
    char *page = world_page(w, f->page);
    unsigned flags = o->flags | (w->n_nodes > 1 ? STORE_SLOW : 0);
    if (store_prepare(o->path, flags, &f->hints, page, &f->token, &f->failure))
        return;
    store_begin(f->store, &f->token, &f->hints, 0, page);
    arrays_look(f, &o->found.arrays);
    o->found.token = f->token;
}

static void say(void *opening, struct io_world *w)
{
    struct opening *o = opening;
    io_fault_start(w->rank);
    if (!o->rc)
        o->rc = take_memory(o->file, &o->file->failure);
    if (!o->rc && w->rank == 0)
        find(o, w);
    o->words[FAILED] = world_failure_key(w, &o->file->failure);
    o->words[LEAST] = o->hash;
    o->words[MOST] = -o->hash;
}

static int open_file(brg_file *f, uintptr_t comm, const char *path, unsigned flags,
                     const char *info, struct brg_error *err)
{
    struct opening o = {.file = f, .path = path, .flags = flags, .hash = hash_of(path, flags)};
    memset(&o.found, 0, sizeof o.found);
    struct world_words words = {say, &o, &o.found, sizeof o.found, o.words, N_WORDS};
    o.rc = read_hints(&f->hints, path, flags, info, &f->failure);
    int rc =
        world_open(comm, 0, f->hints.share, f->hints.segment_bytes, &words, &f->world, &f->failure);
    rc = rc ? rc : agree_on_file(f, &o);
    if (!rc) {
        f->hints = o.found.hints;
        f->token = o.found.token;
        f->page = o.found.page;
        if (f->page >= 0 && f->world->leaders && f->world->rank != 0)
            world_clear_page(f->world, f->page);
        f->size = flags & BRG_CREATE ? 0 : o.found.token.size;
        f->carried = flags & BRG_WRITE && f->world->n_nodes > 1;
        if (f->world->rank != 0)
            store_begin(f->store, &f->token, &f->hints, f->world->rank,
                        world_page(f->world, f->page));
        drain_begin(f->drain, f->store, &f->hints);
        rc = arrays_load(f, &o.found.arrays);
    }
    if (rc && err)
        *err = f->failure;
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
    f->early.failure.rank = -1;
    f->early.failure.offset = -1;
    int rc = open_file(f, comm, path, flags, info, err);
    if (rc == 0) {
        *out = f;
        return 0;
    }
    const char *name = f->token.path[0] ? f->token.path : path;
    if (err && !err->path[0] && name)
        snprintf(err->path, sizeof err->path, "%s", name);
    drain_close(f->drain);
    free(f->spare);
    if (f->store) {
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
    uintptr_t handle = rc ? 0 : mpi->from_fortran(comm);
    if (!rc && !handle)
        rc = brg_error_set(err, -EINVAL, "%d is no communicator", (int)comm);
    return rc ? rc : brg_file_open_handle(handle, path, flags, info, f, err);
}

void brg_file_on_progress(brg_file *f, brg_progress *progress, void *context)
{
    if (!f)
        return;
    f->progress = progress;
    f->progress_context = context;
}

void file_tell(const brg_file *f, uint64_t moved, uint64_t bytes)
{
    if (f->progress && bytes)
        f->progress(f->progress_context, moved, bytes);
}

uint64_t brg_file_size(const brg_file *f)
{
    return f ? f->size : 0;
}

int brg_file_close(brg_file *f, struct brg_error *err)
{
    struct io_request nothing;
    if (!f)
        return 0;
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
    if (!f->committed)
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
    return f ? f->explained : "";
}
