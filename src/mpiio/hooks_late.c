/* The calls of MPI that take a file and are not done here: those of a late one (late.h) must have
 * the handle that MPI has for it, and get it; some can be answered without. Whoever adds to MPI's
 * calls that take a file adds to these. */
#include "mpiio/hooks.h"

#include <errno.h>
#include <string.h>

#include "mpi/types.h"
#include "mpiio/late.h"
#include "mpiio/late_all.h"
#include "mpiio/late_handler.h"
#include "mpiio/late_hints.h"
#include "store/store.h"

/* No call that takes a file has more arguments; where it has fewer, what is passed on for the
 * others is not looked at. */
typedef int any_call(word file, word a, word b, word c, word d, word e);
typedef int fortran_call(word file);
typedef word number_call(int number);

static int pass(any_call *next, enum with with, word file, word a, word b, word c, word d, word e)
{
    int rc = hooks_handle(hooks_file(file), with, &file);
    if (rc)
        return rc;
    hooks_inside++;
    rc = next(file, a, b, c, d, e);
    hooks_inside--;
    return rc;
}

#define ANY (word file, word a, word b, word c, word d, word e)
#define PASS(with, name) HOOK(any_call, File_##name, ANY, pass(next, with, file, a, b, c, d, e))

PASS(WITH_ALL, preallocate)
PASS(WITH_ALL, set_info)
PASS(WITH_ALL, seek_shared)
PASS(WITH_NOBODY, get_view)
PASS(WITH_NOBODY, get_type_extent)
PASS(WITH_NOBODY, get_type_extent_c)
PASS(WITH_NOBODY, get_byte_offset)
PASS(WITH_NOBODY, get_errhandler)
PASS(WITH_NOBODY, call_errhandler)

/* `does` is what MPI does meanwhile, and whether it may go on when the call has ended. */
enum does {
    READS,
    WRITES,
    WRITES_ON
};

static int pass_data(any_call *next, enum with with, enum does does, word file, word a, word b,
                     word c, word d, word e)
{
    struct file *f = hooks_file(file);
    if (does == WRITES_ON)
        file_writes_on(f);
    int rc = pass(next, with, file, a, b, c, d, e);
    if (does == WRITES && rc == 0)
        file_wrote(f);
    return rc;
}

#define PASS_COUNT(with, does, name, count)               \
    HOOK(any_call, File_##name, ANY,                      \
         hooks_too_many(count) ? hooks_refuse_count(file) \
                               : pass_data(next, with, does, file, a, b, c, d, e))
#define PASS_VERB(verb, does, goes_on, large, number)                     \
    PASS_COUNT(WITH_ALL, does, verb##_ordered##large, (number)b)          \
    PASS_COUNT(WITH_ALL, goes_on, verb##_ordered_begin##large, (number)b) \
    PASS_COUNT(WITH_NOBODY, goes_on, i##verb##large, (number)b)           \
    PASS_COUNT(WITH_NOBODY, goes_on, i##verb##_at##large, (number)c)

PASS_VERB(read, READS, READS, , int)
PASS_VERB(read, READS, READS, _c, int64_t)
PASS_VERB(write, WRITES, WRITES_ON, , int)
PASS_VERB(write, WRITES, WRITES_ON, _c, int64_t)
PASS(WITH_ALL, read_ordered_end)
PASS(WITH_ALL, write_ordered_end)

/* ---- error handlers ---- */

typedef int create_call(word function, word handler);

HOOK(create_call, File_create_errhandler, (word function, word handler),
     next(late_handler_of(function), handler))

/* mpi4py gives each file the handler that files have from the beginning. */
static int set_handler(any_call *next, word file, word handler)
{
    struct file *f = hooks_file(file);
    if (!f || !late_is_ours(f) || !f->mpi->files->late->same_handler(handler, f->late->handler))
        return pass(next, WITH_NOBODY, file, handler, 0, 0, 0, 0);
    return 0;
}

HOOK(any_call, File_set_errhandler, (word file, word a), set_handler(next, file, a))

/* ---- what is known without MPI ---- */

static int get_amode(any_call *next, word file, word a)
{
    struct file *f = hooks_file(file);
    if (!f || !f->late)
        return pass(next, WITH_NOBODY, file, a, 0, 0, 0, 0);
    *(int *)a = f->late->mode;
    return 0;
}

/* MPI's file may be one of this rank alone. */
static int get_group(any_call *next, word file, word a)
{
    struct file *f = hooks_file(file);
    if (!f || !f->late)
        return pass(next, WITH_NOBODY, file, a, 0, 0, 0, 0);
    return f->mpi->files->late->group(f->group->comm, (void *)a);
}

static int file_size(struct file *f, uint64_t *bytes)
{
    file_use(f);
    int rc = store_size(f->all.store, bytes, NULL);
    file_used(f);
    return rc;
}

static int get_size(any_call *next, word file, word a)
{
    struct file *f = hooks_file(file);
    uint64_t bytes;
    if (!f || !late_is_ours(f) || file_size(f, &bytes))
        return pass(next, WITH_NOBODY, file, a, 0, 0, 0, 0);
    *(int64_t *)a = (int64_t)bytes;
    return 0;
}

static int get_atomicity(any_call *next, word file, word a)
{
    struct file *f = hooks_file(file);
    if (!f || !late_is_apart(f))
        return pass(next, WITH_NOBODY, file, a, 0, 0, 0, 0);
    *(int *)a = 0;
    return 0;
}

static int get_position(any_call *next, word file, word a)
{
    struct file *f = hooks_file(file);
    if (!f || !late_is_ours(f))
        return pass(next, WITH_NOBODY, file, a, 0, 0, 0, 0);
    *(int64_t *)a = f->late->position;
    return 0;
}

static int get_info(any_call *next, word file, word a)
{
    struct file *f = hooks_file(file);
    hooks_inside++;
    int known = f && late_is_apart(f) && a && late_hints_answer(f, (void *)a);
    hooks_inside--;
    return known ? 0 : pass(next, WITH_NOBODY, file, a, 0, 0, 0, 0);
}

static int set_size(any_call *next, word file, word a)
{
    struct file *f = hooks_file(file);
    hooks_inside++;
    int done = f && late_is_apart(f) && late_set_size(f, (int64_t)a);
    hooks_inside--;
    return done ? 0 : pass(next, WITH_ALL, file, a, 0, 0, 0, 0);
}

static int seek(any_call *next, word file, word a, word b)
{
    struct file *f = hooks_file(file);
    if (!f || !late_is_ours(f) || (int)b != f->mpi->files->late->seek_from_start || (int64_t)a < 0)
        return pass(next, WITH_NOBODY, file, a, b, 0, 0, 0);
    f->late->position = (int64_t)a;
    return 0;
}

HOOK(any_call, File_set_size, (word file, word a), set_size(next, file, a))
HOOK(any_call, File_get_amode, (word file, word a), get_amode(next, file, a))
HOOK(any_call, File_get_group, (word file, word a), get_group(next, file, a))
HOOK(any_call, File_get_size, (word file, word a), get_size(next, file, a))
HOOK(any_call, File_get_atomicity, (word file, word a), get_atomicity(next, file, a))
HOOK(any_call, File_get_position, (word file, word a), get_position(next, file, a))
HOOK(any_call, File_get_info, (word file, word a), get_info(next, file, a))
HOOK(any_call, File_seek, (word file, word a, word b), seek(next, file, a, b))

/* ---- the shared pointer ---- */

static int get_shared(any_call *next, word file, word a)
{
    struct file *f = hooks_file(file);
    if (!f || !late_is_apart(f))
        return pass(next, WITH_NOBODY, file, a, 0, 0, 0, 0);
    *(int64_t *)a = atomic_load(&f->late->page->shared);
    return 0;
}

/* In etypes; what is no whole number of them MPI refuses. */
static int64_t etypes_of(const struct file *f, int64_t count, mpi_handle type)
{
    struct mpi_contents contents;
    if (count < 0 || f->mpi->types->tell(type, &contents))
        return 0;
    int64_t bytes = count * contents.size;
    mpi_contents_drop(&contents);
    return bytes / (int64_t)f->view.etype_bytes;
}

/* Calls with the shared pointer, in words (file, buf, count, type, status or request): where all
 * ranks have no file together yet, at an offset that nobody else has (`at`). */
static int at_shared(any_call *next, const char *at, enum does does, word file, word a,
                     int64_t count, word b, word c, word d)
{
    struct file *f = hooks_file(file);
    any_call *there;
    if (hooks_too_many(count))
        return hooks_refuse_count(file);
    if (!f || !late_is_apart(f))
        return pass_data(next, WITH_NOBODY, does, file, a, b, c, d, 0);
    if (!late_is_shared(f)) /* looked up by dlsym, so that nobody knew of it */
        return late_raise(f, -ENOTSUP);
    *(void **)&there = hooks_next(at);
    int64_t from = atomic_fetch_add(&f->late->page->shared, etypes_of(f, count, c));
    return there ? pass_data(there, WITH_NOBODY, does, file, (word)from, a, b, c, d) : MPI_FAILED;
}

#define SHARED(verb, does, large, number)                                                    \
    HOOK(any_call, File_##verb##_shared##large, (word file, word a, word b, word c, word d), \
         at_shared(next, "PMPI_File_" #verb "_at" #large, does, file, a, (number)b, b, c, d))

HOOK(any_call, File_get_position_shared, (word file, word a), get_shared(next, file, a))
SHARED(read, READS, , int)
SHARED(read, READS, _c, int64_t)
SHARED(write, WRITES, , int)
SHARED(write, WRITES, _c, int64_t)
SHARED(iread, READS, , int)
SHARED(iread, READS, _c, int64_t)
SHARED(iwrite, WRITES_ON, , int)
SHARED(iwrite, WRITES_ON, _c, int64_t)

/* ---- non-blocking collective calls ---- */

/* They may not wait for the others, and so MPI cannot open the file together: each rank moves its
 * bytes alone. Nothing but its bytes is written, as it may be between those of others: MPI's own
 * way, which reads and writes again what lies between short runs, would lose theirs. */
static int at_once(struct file *f, const struct call *call, void *request, int *rc)
{
    uint64_t moved;
    if (!call->write || !call_at_once(f, call, &moved, rc))
        return 0;
    if (!*rc)
        *rc = f->mpi->files->late->request(moved, request);
    return 1;
}

/* `alone` is the name of the call of one rank, with the same arguments. */
static int begin_all(any_call *next, const char *alone, const struct call *call, word request,
                     word file, word a, word b, word c, word d, word e)
{
    struct file *f = hooks_file(file);
    any_call *there = next;
    int rc, apart = f && late_is_apart(f);
    hooks_inside++;
    int done = apart && at_once(f, call, (void *)request, &rc);
    hooks_inside--;
    if (done)
        return rc;
    if (hooks_too_many(call->count))
        return hooks_refuse_count(file);
    if (apart)
        *(void **)&there = hooks_next(alone);
    enum does does = call->write ? WRITES_ON : READS;
    return there ? pass_data(there, WITH_NOBODY, does, file, a, b, c, d, e) : MPI_FAILED;
}

static int begin_data(any_call *next, const char *alone, int write, int64_t count, word file,
                      word a, word b, word c, word d)
{
    struct call call = {.write = write, .buf = (char *)a, .count = count, .type = c};
    return begin_all(next, alone, &call, d, file, a, b, c, d, 0);
}

static int begin_at(any_call *next, const char *alone, int write, int64_t count, word file, word a,
                    word b, word c, word d, word e)
{
    struct call call = {
        .write = write, .at = 1, .offset = (int64_t)a, .buf = (char *)b, .count = count, .type = d};
    return begin_all(next, alone, &call, e, file, a, b, c, d, e);
}

#define BEGIN(verb, write, large, number)                                                  \
    HOOK(any_call, File_i##verb##_all##large, (word file, word a, word b, word c, word d), \
         begin_data(next, "PMPI_File_i" #verb #large, write, (number)b, file, a, b, c, d)) \
    HOOK(any_call, File_i##verb##_at_all##large, ANY,                                      \
         begin_at(next, "PMPI_File_i" #verb "_at" #large, write, (number)c, file, a, b, c, d, e))

BEGIN(read, 0, , int)
BEGIN(read, 0, _c, int64_t)
BEGIN(write, 1, , int)
BEGIN(write, 1, _c, int64_t)

/* ---- Fortran's handles ---- */

static int to_fortran(fortran_call *next, word file)
{
    struct file *f = hooks_file(file);
    return f && f->late ? f->late->number : next(file);
}

static word from_fortran(number_call *next, int number)
{
    struct file *f = file_by_number(number);
    return f ? f->handle : next ? next(number) : 0;
}

#define FROM(name)                             \
    BRG_API word name(int number);             \
    word name(int number)                      \
    {                                          \
        static number_call *next;              \
        if (!next)                             \
            *(void **)&next = mpi_next(#name); \
        return from_fortran(next, number);     \
    }

HOOK(fortran_call, File_c2f, (word file), to_fortran(next, file))
HOOK(fortran_call, File_toint, (word file), to_fortran(next, file))
FROM(MPI_File_f2c)
FROM(PMPI_File_f2c)
FROM(MPI_File_fromint)
FROM(PMPI_File_fromint)
