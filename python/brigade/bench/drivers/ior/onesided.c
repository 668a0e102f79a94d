/* ONESIDED: libbrigade_shmemio, MPI-IO's calls moved by put and get: over MPI's windows, or with
 * hint seam=shmem, in a program built with oshcc, over OpenSHMEM. As MPIIO, with or without a
 * view. */
#include <mpi.h> /* before brigade/shmemio.h, which then has SHMEM_Comm_of_mpi */

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "brigade/shmemio.h"
#include "ior.h"
#include "job.h"

struct file {
    SHMEM_File f;
    struct target kept;
    SHMEM_Datatype transfer, view; /* with a view */
    char path[PATH_ROOM];
};

static int over_shmem(const struct way *way)
{
    return strstr(way->hints, "seam=shmem") != NULL;
}

static const char *onesided_refuse(const struct test *t, const struct way *way)
{
    if (over_shmem(way) && !job_has_shmem())
        return "ONESIDED:seam=shmem: this program has no OpenSHMEM: build it with oshcc "
               "(`brigade bench ior -a ONESIDED:seam=shmem` does)";
    if (over_shmem(way) && !t->o.own_file && t->ranks != job_ranks())
        return "ONESIDED:seam=shmem: all tasks take part (no -N)";
    if (t->o.random_offset && t->o.collective)
        return "ONESIDED: transfers in random order (-z) cannot be collective (-c)";
    if (t->o.random_offset && way->view)
        return "ONESIDED: transfers in random order (-z) do not go through a view (-V)";
    return NULL;
}

static int failed(char *why)
{
    return why_not(why, "%s", SHMEM_Last_error()->text);
}

static SHMEM_Comm comm_of(const struct target *target)
{
    if (!over_shmem(target->way))
        return SHMEM_Comm_of_mpi(target->comm);
    return target->t->o.own_file ? SHMEM_COMM_SELF : SHMEM_COMM_WORLD;
}

static int take_hints(const struct target *target, SHMEM_Info info, char *why)
{
    char text[sizeof target->way->hints], *rest = NULL;
    memcpy(text, target->way->hints, sizeof text);
    for (char *word = strtok_r(text, ":", &rest); word; word = strtok_r(NULL, ":", &rest)) {
        char *value = strchr(word, '=');
        if (!value)
            return why_not(why, "ONESIDED: hint '%s' has no value", word);
        *value = '\0';
        if (SHMEM_Info_set(info, word, value + 1))
            return failed(why);
    }
    return 0;
}

/* A segment of transfers, of which this task's block is visible. */
static int set_view(struct file *f)
{
    const struct target *target = &f->kept;
    struct shape shape = view_shape(target);
    SHMEM_Count all = shape.all, count = shape.count, start = shape.start;
    return SHMEM_Type_contiguous(target->t->o.transfer, SHMEM_BYTE, &f->transfer) ||
           SHMEM_Type_commit(&f->transfer) ||
           SHMEM_Type_create_subarray_c(1, &all, &count, &start, SHMEM_ORDER_C, f->transfer,
                                        &f->view) ||
           SHMEM_Type_commit(&f->view) ||
           SHMEM_File_set_view(f->f, 0, f->transfer, f->view, "native", SHMEM_INFO_NULL);
}

static int onesided_open(const struct target *target, void **file, char *why)
{
    int mode = target->writing ? SHMEM_MODE_CREATE | SHMEM_MODE_WRONLY : SHMEM_MODE_RDONLY;
    struct file *f = calloc(1, sizeof *f);
    SHMEM_Info info;
    if (!f || SHMEM_Info_create(&info)) {
        free(f);
        return why_not(why, "no memory");
    }
    f->kept = *target;
    snprintf(f->path, sizeof f->path, "%s", target->path);
    int rc = take_hints(target, info, why);
    if (!rc && (SHMEM_File_open(comm_of(target), f->path, mode, info, &f->f) ||
                (target->way->view && set_view(f))))
        rc = failed(why);
    SHMEM_Info_free(&info);
    if (rc)
        free(f);
    else
        *file = f;
    return rc;
}

static int call(struct file *f, int writing, char *buf, int64_t bytes, int64_t at,
                SHMEM_Status *done)
{
    int all = f->kept.t->o.collective, view = f->kept.way->view;
    int64_t count = view ? 1 : bytes;
    SHMEM_Datatype type = view ? f->transfer : SHMEM_BYTE;
    if (writing)
        return all ? SHMEM_File_write_at_all(f->f, at, buf, count, type, done)
                   : SHMEM_File_write_at(f->f, at, buf, count, type, done);
    return all ? SHMEM_File_read_at_all(f->f, at, buf, count, type, done)
               : SHMEM_File_read_at(f->f, at, buf, count, type, done);
}

static int onesided_move(void *file, int writing, char *buf, int64_t bytes, int64_t offset,
                         char *why)
{
    struct file *f = file;
    int64_t at = f->kept.way->view ? view_transfer(&f->kept, offset) : offset;
    SHMEM_Status done;
    if (call(f, writing, buf, bytes, at, &done))
        return failed(why);
    if (done.bytes != bytes)
        return why_not(why, "%s: offset %lld: %lld of %lld bytes were moved", f->path,
                       (long long)offset, (long long)done.bytes, (long long)bytes);
    return 0;
}

static int onesided_sync(void *file, char *why)
{
    struct file *f = file;
    return SHMEM_File_sync(f->f) ? failed(why) : 0;
}

static int onesided_close(void *file, char *why)
{
    struct file *f = file;
    int rc = SHMEM_File_close(&f->f) ? failed(why) : 0;
    if (f->kept.way->view) {
        SHMEM_Type_free(&f->view);
        SHMEM_Type_free(&f->transfer);
    }
    free(f);
    return rc;
}

const struct back_end back_end_onesided = {
    .name = "ONESIDED",
    .help = "libbrigade_shmemio; hints are its own: ONESIDED:view:writers=2, :seam=shmem",
    .views = 1,
    .refuse = onesided_refuse,
    .open = onesided_open,
    .move = onesided_move,
    .sync = onesided_sync,
    .close = onesided_close,
    .size = posix_size,
    .remove = posix_remove};
