/* See file.h. */
#include "mpiio/file.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "mpiio/device.h"
#include "mpiio/late.h"
#include "mpiio/merged.h"
#include "mpiio/report.h"
#include "type/decode.h"
#include "world/fault.h"

/* ---- the path ---- */

/* MPIs take a name of a driver before the path. These are served by plain files; of others we know
 * nothing. */
static const char *const plain_drivers[] = {"ufs:", "nfs:", "lustre:", "gpfs:", "panfs:", NULL};

/* The path without the driver's name, or NULL: a driver that is not known. */
static const char *strip(const char *path)
{
    const char *colon = strchr(path, ':'), *slash = strchr(path, '/');
    for (int i = 0; plain_drivers[i]; i++)
        if (strncmp(path, plain_drivers[i], strlen(plain_drivers[i])) == 0)
            return path + strlen(plain_drivers[i]);
    return colon && (!slash || colon < slash) ? NULL : path;
}

/* ---- hints ---- */

static const struct {
    const char *key, *ours;
} known_hints[] = {
    {"cb_nodes", "writers"},
    {"striping_unit", "stripe"},
    {"brigade_transport", "transport"},
    {"brigade_writers", "writers"},
    {"brigade_segment", "segment"},
    {"brigade_stripe", "stripe"},
    {"brigade_share", "share"},
    {"brigade_lock_unit", "lock-unit"},
};

/* Adds a hint whose value can be used; others are left out, as MPI does with what it cannot use. */
static void add_hint(struct file *f, const char *ours, const char *value)
{
    struct io_hints tried;
    char text[160];
    size_t used = strlen(f->given);
    hints_default(&tried);
    if (snprintf(text, sizeof text, "%s=%s:", ours, value) < (int)sizeof text &&
        hints_parse(&tried, text, NULL) == 0 && used + strlen(text) < sizeof f->given)
        strcpy(f->given + used, text);
}

static void take_hints(struct file *f, mpi_handle info)
{
    char value[128];
    for (size_t i = 0; i < sizeof known_hints / sizeof *known_hints; i++)
        if (f->mpi->files->hint(info, known_hints[i].key, value, sizeof value))
            add_hint(f, known_hints[i].ours, value);
}

/* ---- opening ---- */

const char *file_left_to_mpi(const struct mpi_files *mpi, const char *path, int mode,
                             mpi_handle info)
{
    char value[8];
    const char *plain = strip(path);
    if (!plain)
        return "it has a driver of its own";
    if (mode & mpi->mode_sequential)
        return "it is opened for sequential use";
    if (mpi->hint(info, "brigade", value, sizeof value) && strcmp(value, "off") == 0)
        return "its hint brigade=off";
    return strlen(plain) < STORE_PATH ? NULL : "its path is too long";
}

static void plain_view(struct file *f)
{
    struct type *byte;
    if (type_basic(1, &byte, NULL))
        return;
    f->most_bytes = UINT64_MAX;
    f->has_view = file_view_create(&f->view, 0, byte, byte, NULL) == 0;
    type_release(byte);
}

struct file *file_new(const struct mpi_interface *mpi, struct group *group, const char *path,
                      int mode, mpi_handle info)
{
    struct file *f = group ? calloc(1, sizeof *f) : NULL;
    if (!f)
        return NULL;
    *f = (struct file){.mpi = mpi, .group = group};
    f->can_read = !(mode & mpi->files->mode_write);
    f->can_write = !(mode & mpi->files->mode_read);
    f->flags = f->can_write ? BRG_WRITE : BRG_READ;
    strcpy(f->path, strip(path));
    file_show_init(f);
    take_hints(f, info);
    plain_view(f);
    device_look();
    return f;
}

void file_opened(mpi_handle handle, mpi_handle comm, const char *path, int mode, mpi_handle info)
{
    const struct mpi_interface *mpi;
    if (mpi_join(&mpi, NULL) || !mpi->files || !mpi->types)
        return;
    const char *why = file_left_to_mpi(mpi->files, path, mode, info);
    if (!why && !merged_none(mpi->files, comm))
        why = "some of its ranks are not of MPI_COMM_WORLD";
    if (why) {
        report_file(path, why);
        return;
    }
    struct file *f = file_new(mpi, group_take(mpi, comm), path, mode, info);
    if (!f)
        return;
    file_name_find(&f->opened, f->path);
    file_keep(f, handle);
}

static void let_go(struct reach *r)
{
    drain_close(r->drain);
    if (r->store)
        store_close(r->store);
    if (r->world)
        world_close(r->world);
    *r = (struct reach){.opened = 0};
}

void file_end(struct file *f)
{
    let_go(&f->all);
    if (f->alone)
        store_close(f->alone);
    if (f->has_view)
        file_view_destroy(&f->view);
    group_give(f->mpi, f->group);
    pthread_rwlock_destroy(&f->used);
    free(f);
}

int file_closing(struct file *f)
{
    struct brg_error failure = {.rank = -1, .offset = -1};
    if (!f)
        return 0;
    int rc = f->can_write ? file_show_last(f, &failure) : 0;
    rc = rc ? late_raise(f, rc) : 0;
    file_forget(f);
    file_end(f);
    return rc;
}

void files_end(void)
{
    const struct mpi_interface *mpi;
    if (mpi_join(&mpi, NULL) || !mpi->files)
        return;
    report_print(mpi->files->rank());
    group_end(mpi);
}

/* ---- the view ---- */

/* Tiles that lie in each other: one of them is seen well enough, and few programs go further
 * (PnetCDF's records). The second one would be in another place, and must not be reached. */
static int see_one_tile(struct file *f, int64_t displacement, const struct type *etype,
                        const struct type *filetype, struct brg_error *err)
{
    struct type *apart;
    int64_t low = type_true_lb(filetype), span = type_true_ub(filetype) - low;
    int rc = type_resized(filetype, low, span, &apart, err);
    if (rc)
        return rc;
    rc = file_view_create(&f->view, displacement, etype, apart, err);
    type_release(apart);
    f->most_bytes = type_size(filetype);
    return rc;
}

static int see(struct file *f, int64_t displacement, mpi_handle etype, mpi_handle filetype,
               struct brg_error *err)
{
    struct type *types[2] = {NULL, NULL};
    int rc = type_decode(f->mpi->types, etype, &types[0], err);
    rc = rc ? rc : type_decode(f->mpi->types, filetype, &types[1], err);
    if (!rc) {
        f->most_bytes = UINT64_MAX;
        rc = file_view_create(&f->view, displacement, types[0], types[1], err);
        if (rc == -ENOTSUP)
            rc = see_one_tile(f, displacement, types[0], types[1], err);
    }
    type_release(types[0]);
    type_release(types[1]);
    return rc;
}

void file_set_view(struct file *f, int64_t displacement, mpi_handle etype, mpi_handle filetype,
                   const char *name)
{
    struct brg_error err;
    f->foreign = strcmp(name, "native") != 0;
    if (f->has_view)
        file_view_destroy(&f->view);
    f->has_view = see(f, displacement, etype, filetype, &err) == 0;
    if (!f->has_view)
        report_file(f->path, err.text);
}

/* ---- our own descriptor ---- */

struct found {
    struct io_hints hints;
    struct store_token token;
    int64_t group; /* its number for the ranks */
};

/* What MPI writes is not published, and not synced before MPI_File_sync. */
static int read_hints(const struct file *f, struct io_hints *hints, struct brg_error *err)
{
    hints_default(hints);
    int rc = hints_parse(hints, f->given, err);
    rc = rc ? rc : hints_parse_environment(hints, getenv("BRIGADE_IO"), f->path, err);
    hints->checksums = hints->sync = hints->verify = hints->async = 0;
    hints->layout = IO_SHARED;
    return rc;
}

/* Brigade's own files of parts are an index to everybody else. */
static void look(const struct file *f, const struct io_hints *hints, struct store_token *token,
                 struct brg_error *failure)
{
    unsigned flags = STORE_IN_PLACE | f->flags;
    const char *path = f->late ? f->path : f->opened.path;
    if (!*path)
        brg_error_set(failure, -ENOENT, "%s was not there when MPI had opened it", f->path);
    else if (store_prepare(path, flags, hints, NULL, token, failure) == 0 &&
             token->layout != IO_SHARED) {
        store_abandon(token);
        brg_error_set(failure, -ENOTSUP, "%s is an index of parts", f->path);
    }
}

static int open_store(const struct file *f, const struct io_hints *hints,
                      const struct store_token *token, uint32_t rank, struct io_store **store,
                      struct brg_error *failure)
{
    int rc = store_open(token, hints, rank, NULL, store, failure);
    rc = rc ? rc : store_need_file(*store, failure);
    if (rc || f->late || file_name_is_of(&f->opened, store_descriptor(*store)))
        return rc;
    return brg_error_set(failure, -ESTALE, "%s is another file than MPI has opened", f->path);
}

struct opening {
    const struct file *file;
    struct found found; /* by rank 0 */
    struct brg_error failure;
    int64_t least[2]; /* of all ranks: what failed, and whether what they share may stay */
    int is_first;     /* rank 0 */
};

static void say(void *opening, struct io_world *w)
{
    struct opening *o = opening;
    io_fault_start(w->rank);
    o->is_first = w->rank == 0;
    if (!o->failure.code && o->is_first)
        look(o->file, &o->found.hints, &o->found.token, &o->failure);
    if (o->is_first)
        o->found.group = o->file->group->number;
    o->least[0] = world_failure_key(w, &o->failure);
    o->least[1] = group_may_stay(o->file->group);
}

/* Rank 0 finds the file, and every rank opens it, in one meeting. */
static int open_together(struct file *f, struct opening *o)
{
    struct reach *r = &f->all;
    struct world_words words = {say, o, &o->found, sizeof o->found, o->least, 2};
    struct io_hints *h = &o->found.hints;
    struct brg_error *failure = &o->failure, world;
    read_hints(f, h, failure);
    int rc = world_open(f->group->comm, !f->group->is_used, h->share, h->segment_bytes, &words,
                        &r->world, &world);
    f->group->is_used = 1;
    if (rc)
        *failure = world;
    if (!rc && o->least[1]) {
        group_stay(f->group);
        group_name(f->group, o->found.group);
    }
    rc = rc ? rc : world_failure_of(r->world, o->least[0], failure);
    if (rc && o->is_first)
        store_abandon(&o->found.token);
    if (rc)
        return rc;
    r->hints = o->found.hints;
    r->token = o->found.token;
    if (open_store(f, &r->hints, &r->token, r->world->rank, &r->store, failure) == 0)
        drain_open(r->store, &r->hints, &r->drain, failure);
    return 0;
}

int file_reach(struct file *f)
{
    struct opening o = {.file = f, .failure = {.rank = -1, .offset = -1}};
    struct reach *r = &f->all;
    if (r->opened)
        return 0;
    memset(&o.found, 0, sizeof o.found);
    o.found.token.lock = o.found.token.file = -1;
    int rc = open_together(f, &o);
    r->opened = rc == 0;
    r->unable = !rc && o.failure.code;
    if (o.failure.code)
        report_file(f->path, o.failure.text);
    if (rc) {
        f->passes = "it cannot be opened beside MPI";
        let_go(r);
    }
    return rc ? -1 : 0;
}

static int open_alone(struct file *f)
{
    struct io_store *store = NULL;
    struct brg_error failure = {.rank = -1, .offset = -1};
    struct store_token token;
    struct io_hints hints;
    if (read_hints(f, &hints, &failure) == 0)
        look(f, &hints, &token, &failure);
    if (!failure.code && open_store(f, &hints, &token, 0, &store, &failure) == 0) {
        f->alone = store; /* others may look, without a lock, whether it is there */
        return 0;
    }
    f->not_alone = 1;
    report_file(f->path, failure.text);
    if (store)
        store_close(store);
    return -1;
}

int file_reach_alone(struct file *f)
{
    static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
    if (f->late || f->alone)
        return 0;
    pthread_mutex_lock(&opening);
    int rc = f->alone ? 0 : f->not_alone ? -1 : open_alone(f);
    pthread_mutex_unlock(&opening);
    return rc;
}
