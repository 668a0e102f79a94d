/* libbrigade_mpiio.so: stands before MPI and does some of the program's calls of MPI-IO.
 *
 * A program is linked with it before MPI, or it is preloaded. One library serves all MPIs: calls
 * are passed on in full machine words, whatever they mean, as libbrigade_pmpi.so does. No header of
 * an MPI is included here.
 *
 * Each call has both of MPI's names, MPI_ and PMPI_: Open MPI's Fortran calls the second, MPICH's
 * the first, with arguments that are C's already, so that all bindings of Fortran come by here. A
 * call that arrives while this library is in MPI on its behalf goes straight on. */
#include "mpiio/hooks.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "mpiio/late_all.h"
#include "mpiio/late_hints.h"
#include "mpiio/report.h"

_Thread_local int hooks_inside;

/* ---- the calls, with what comes next in MPI; each for both names ---- */

typedef int open_call(word comm, const char *path, word mode, word info, mpi_handle *file);
typedef int close_call(mpi_handle *file);
typedef int view_call(word file, word displacement, word etype, word filetype, const char *name,
                      word info);
typedef int atomic_call(word file, word on);
typedef int sync_call(word file);
typedef int data_call(word file, word buf, word count, word type, void *status);
typedef int at_call(word file, word offset, word buf, word count, word type, void *status);
typedef int call_done(struct file *file, const struct call *call, uint64_t *moved, int *code);
typedef int begin_call(word file, word buf, word count, word type);
typedef int at_begin_call(word file, word offset, word buf, word count, word type);
typedef int end_call(word file, word buf, void *status);
typedef int finalize_call(void);

void *hooks_next(const char *name)
{
    char plain[64];
    void *next = mpi_next(name);
    size_t n = strlen(name);
    if (next || n < 2 || n >= sizeof plain || strcmp(name + n - 2, "_c"))
        return next;
    memcpy(plain, name, n - 2);
    plain[n - 2] = 0;
    return mpi_next(plain);
}

int hooks_too_many(int64_t count)
{
    return count > INT_MAX && !mpi_next("PMPI_File_write_c");
}

int hooks_refuse_count(word handle)
{
    const struct mpi_interface *mpi;
    struct file *f = hooks_file(handle);
    if (mpi_join(&mpi, NULL) || !mpi->files)
        return MPI_FAILED;
    hooks_inside++;
    int rc = f ? late_raise(f, -E2BIG) : mpi->files->raise(handle, -E2BIG);
    hooks_inside--;
    return rc;
}

struct file *hooks_file(word handle)
{
    struct file *f = file_of(handle);
    return f && (!hooks_inside || f->late) ? f : NULL;
}

int hooks_handle(struct file *f, enum with with, word *handle)
{
    mpi_handle found = *handle;
    hooks_inside++;
    int rc = f ? late_handle(f, with, &found) : 0;
    hooks_inside--;
    *handle = found;
    return rc;
}

/* What MPI opens has a handle, whatever it returns: MPICH 5.0 returns success for what it could not
 * open, after it has called a program's error handler. */
static int do_open(open_call *next, word comm, const char *path, word mode, word info,
                   mpi_handle *file)
{
    static const mpi_handle none = (mpi_handle)-1;
    mpi_handle opened = none;
    int outer = !hooks_inside++ && !report_is_off();
    int late = outer && late_open(comm, path, (int)mode, info, file);
    int rc = late ? 0 : next(comm, path, mode, info, &opened);
    if (opened != none)
        *file = opened;
    if (outer && !late)
        late_hints_learn(rc || opened == none ? 0 : opened);
    if (outer && !late && rc == 0 && opened && opened != none)
        file_opened(opened, comm, path, (int)mode, info);
    hooks_inside--;
    return rc;
}

/* An error handler that closes its file, when it is told that closing has failed, has what it
 * wants: it is being closed. */
static int do_close(close_call *next, mpi_handle *file)
{
    static _Thread_local struct file *closing;
    if (closing && (file_of(*file) == closing || file_in_mpi(*file) == closing))
        return 0;
    struct file *f = hooks_file(*file), *outer = closing;
    int late = f && f->late;
    hooks_inside++;
    closing = f;
    int rc = late ? late_close(f, file) : file_closing(f);
    closing = outer;
    int of_mpi = late ? 0 : next(file);
    hooks_inside--;
    return of_mpi ? of_mpi : rc;
}

static int do_view(view_call *next, word file, word displacement, word etype, word filetype,
                   const char *name, word info)
{
    struct file *f = hooks_file(file);
    int rc = 0;
    hooks_inside++;
    if (!f || !late_is_apart(f) ||
        !late_set_view(f, (int64_t)displacement, etype, filetype, name, info)) {
        rc = hooks_handle(f, WITH_ALL, &file);
        rc = rc ? rc : next(file, displacement, etype, filetype, name, info);
        if (f && rc == 0)
            file_set_view(f, (int64_t)displacement, etype, filetype, name);
    }
    hooks_inside--;
    return rc;
}

static int do_atomic(atomic_call *next, word file, word on)
{
    struct file *f = hooks_file(file);
    int rc = hooks_handle(f, WITH_ALL, &file);
    if (rc)
        return rc;
    hooks_inside++;
    rc = next(file, on);
    if (f && rc == 0)
        f->atomic = f->mpi->files->atomic(file);
    hooks_inside--;
    return rc;
}

static int do_sync(sync_call *next, word file)
{
    struct file *f = hooks_file(file);
    int rc = 0;
    hooks_inside++;
    if (f && late_is_apart(f) && late_sync(f, &rc))
        rc = rc ? late_raise(f, rc) : 0;
    else {
        rc = hooks_handle(f, WITH_ALL, &file);
        rc = rc ? rc : next(file);
    }
    int failed = f && rc == 0 ? file_synced(f) : 0;
    rc = failed ? late_raise(f, failed) : rc;
    hooks_inside--;
    return rc;
}

static int do_finalize(finalize_call *next)
{
    int outer = !hooks_inside++;
    if (outer && !report_is_off()) {
        late_hints_end();
        files_end();
    }
    int rc = next();
    hooks_inside--;
    return rc;
}

/* 1: done, with *moved and *code. */
static int taken(struct file *f, call_done *does, const struct call *call, uint64_t *moved,
                 int *code)
{
    if (!f)
        return 0;
    hooks_inside++;
    int done = does(f, call, moved, code);
    hooks_inside--;
    return done;
}

/* The same, and its status is told. */
static int answered(struct file *f, call_done *does, const struct call *call, void *status, int *rc)
{
    uint64_t moved;
    int done = taken(f, does, call, &moved, rc);
    if (done && *rc == 0)
        f->mpi->files->tell(status, moved);
    return done;
}

static int do_data(data_call *next, call_done *does, int write, word file, word buf, word count,
                   int64_t n, word type, void *status)
{
    struct call call = {.write = write,
                        .buf = (char *)buf,
                        .count = n,
                        .type = type,
                        .is_too_long = hooks_too_many(n)};
    struct file *f = hooks_file(file);
    int rc;
    if (answered(f, does, &call, status, &rc))
        return rc;
    if (hooks_too_many(n))
        return hooks_refuse_count(file);
    rc = hooks_handle(f, does == call_together ? WITH_ALL : WITH_NOBODY, &file);
    if (rc)
        return rc;
    hooks_inside++;
    rc = next(file, buf, count, type, status);
    hooks_inside--;
    if (write && rc == 0)
        file_wrote(f);
    return rc;
}

static int do_at(at_call *next, call_done *does, int write, word file, word offset, word buf,
                 word count, int64_t n, word type, void *status)
{
    struct call call = {.write = write,
                        .at = 1,
                        .offset = (int64_t)offset,
                        .buf = (char *)buf,
                        .count = n,
                        .type = type,
                        .is_too_long = hooks_too_many(n)};
    struct file *f = hooks_file(file);
    int rc;
    if (answered(f, does, &call, status, &rc))
        return rc;
    if (hooks_too_many(n))
        return hooks_refuse_count(file);
    rc = hooks_handle(f, does == call_together ? WITH_ALL : WITH_NOBODY, &file);
    if (rc)
        return rc;
    hooks_inside++;
    rc = next(file, offset, buf, count, type, status);
    hooks_inside--;
    if (write && rc == 0)
        file_wrote(f);
    return rc;
}

/* A split call is done as it begins, as MPI allows; its status is given as it ends. Where it fails,
 * the program's handler of errors may have closed the file. */
static int begun(struct file *f, const struct call *call, int *rc)
{
    uint64_t moved;
    if (!f)
        return 0;
    f->split = SPLIT_NONE;
    int done = taken(f, call_together, call, &moved, rc);
    if (done && *rc)
        return 1;
    f->split = done ? SPLIT_DONE : SPLIT_PASSED;
    f->split_bytes = done ? moved : 0;
    return done;
}

static int do_begin(begin_call *next, int write, word file, word buf, word count, int64_t n,
                    word type)
{
    struct call call = {.write = write,
                        .buf = (char *)buf,
                        .count = n,
                        .type = type,
                        .is_too_long = hooks_too_many(n)};
    struct file *f = hooks_file(file);
    int rc;
    if (begun(f, &call, &rc))
        return rc;
    if (hooks_too_many(n))
        return hooks_refuse_count(file);
    rc = hooks_handle(f, WITH_ALL, &file);
    if (rc)
        return rc;
    hooks_inside++;
    rc = next(file, buf, count, type);
    hooks_inside--;
    return rc;
}

static int do_at_begin(at_begin_call *next, int write, word file, word offset, word buf, word count,
                       int64_t n, word type)
{
    struct call call = {.write = write,
                        .at = 1,
                        .offset = (int64_t)offset,
                        .buf = (char *)buf,
                        .count = n,
                        .type = type,
                        .is_too_long = hooks_too_many(n)};
    struct file *f = hooks_file(file);
    int rc;
    if (begun(f, &call, &rc))
        return rc;
    if (hooks_too_many(n))
        return hooks_refuse_count(file);
    rc = hooks_handle(f, WITH_ALL, &file);
    if (rc)
        return rc;
    hooks_inside++;
    rc = next(file, offset, buf, count, type);
    hooks_inside--;
    return rc;
}

static int do_end(end_call *next, int write, word file, word buf, void *status)
{
    struct file *f = hooks_file(file);
    enum split split = f ? f->split : SPLIT_NONE;
    if (f)
        f->split = SPLIT_NONE;
    if (split == SPLIT_DONE) {
        f->mpi->files->tell(status, f->split_bytes);
        return 0;
    }
    int rc = hooks_handle(f, WITH_ALL, &file);
    if (rc)
        return rc;
    hooks_inside++;
    rc = next(file, buf, status);
    hooks_inside--;
    if (write && rc == 0)
        file_wrote(f);
    return rc;
}

/* ---- the names ---- */

HOOK(open_call, File_open, (word comm, const char *path, word mode, word info, mpi_handle *file),
     do_open(next, comm, path, mode, info, file))
HOOK(close_call, File_close, (mpi_handle * file), do_close(next, file))
HOOK(view_call, File_set_view,
     (word file, word displacement, word etype, word filetype, const char *name, word info),
     do_view(next, file, displacement, etype, filetype, name, info))
HOOK(atomic_call, File_set_atomicity, (word file, word on), do_atomic(next, file, on))
HOOK(sync_call, File_sync, (word file), do_sync(next, file))
HOOK(finalize_call, Finalize, (void), do_finalize(next))

/* A count is an int, or in the forms of MPI 4 for large counts an MPI_Count. */
#define DATA(verb, write, large, number)                                                           \
    HOOK(data_call, File_##verb##_all##large,                                                      \
         (word file, word buf, word count, word type, void *status),                               \
         do_data(next, call_together, write, file, buf, count, (number)count, type, status))       \
    HOOK(at_call, File_##verb##_at_all##large,                                                     \
         (word file, word offset, word buf, word count, word type, void *status),                  \
         do_at(next, call_together, write, file, offset, buf, count, (number)count, type, status)) \
    HOOK(begin_call, File_##verb##_all_begin##large, (word file, word buf, word count, word type), \
         do_begin(next, write, file, buf, count, (number)count, type))                             \
    HOOK(at_begin_call, File_##verb##_at_all_begin##large,                                         \
         (word file, word offset, word buf, word count, word type),                                \
         do_at_begin(next, write, file, offset, buf, count, (number)count, type))
#define ALONE(verb, write, large, number)                                                 \
    HOOK(data_call, File_##verb##large,                                                   \
         (word file, word buf, word count, word type, void *status),                      \
         do_data(next, call_alone, write, file, buf, count, (number)count, type, status)) \
    HOOK(at_call, File_##verb##_at##large,                                                \
         (word file, word offset, word buf, word count, word type, void *status),         \
         do_at(next, call_alone, write, file, offset, buf, count, (number)count, type, status))
#define ENDS(verb, write)                                                         \
    HOOK(end_call, File_##verb##_all_end, (word file, word buf, void *status),    \
         do_end(next, write, file, buf, status))                                  \
    HOOK(end_call, File_##verb##_at_all_end, (word file, word buf, void *status), \
         do_end(next, write, file, buf, status))

DATA(write, 1, , int)
DATA(write, 1, _c, int64_t)
DATA(read, 0, , int)
DATA(read, 0, _c, int64_t)
ENDS(write, 1)
ENDS(read, 0)
ALONE(write, 1, , int)
ALONE(write, 1, _c, int64_t)
ALONE(read, 0, , int)
ALONE(read, 0, _c, int64_t)
