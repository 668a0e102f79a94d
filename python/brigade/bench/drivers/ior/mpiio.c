/* MPI-IO, whichever the MPI has: with explicit offsets, or (-V) through a view in which a task sees
 * its own blocks alone, counted in transfers. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "ior.h"

#define HINT "IOR_HINT__MPI__"

extern char **environ;

struct file {
    MPI_File f;
    struct target kept;
    MPI_Datatype transfer, view; /* with a view */
    char path[PATH_ROOM];
};

static int failed(char *why, const char *path, const char *call, int code)
{
    char text[MPI_MAX_ERROR_STRING];
    int n = 0;
    MPI_Error_string(code, text, &n);
    return why_not(why, "%s: %s: %.*s", path, call, n, text);
}

static const char *mpiio_refuse(const struct test *t, const struct way *way)
{
    if (t->o.transfer > INT_MAX)
        return "MPIIO: a transfer (-t) of 2 GiB and more is too much for one call";
    if (t->o.random_offset && t->o.collective)
        return "MPIIO: transfers in random order (-z) cannot be collective (-c)";
    if (t->o.random_offset && way->view)
        return "MPIIO: transfers in random order (-z) do not go through a view (-V)";
    if (way->view && t->o.block / t->o.transfer * (t->o.own_file ? 1 : t->ranks) > INT_MAX)
        return "MPIIO: more transfers a segment than a view can have: a larger -t, or a smaller -b";
    return NULL;
}

/* "IOR_HINT__MPI__name=value", as in the environment; in a file, with blanks. */
static void take_hint(MPI_Info info, const char *line)
{
    char name[MPI_MAX_INFO_KEY], value[512];
    if (strncmp(line, HINT, strlen(HINT)) == 0 &&
        sscanf(line + strlen(HINT), "%254[^= \t] = %511[^ \t\r\n]", name, value) == 2)
        MPI_Info_set(info, name, value);
}

int mpiio_hints(const struct target *target, MPI_Info info, char *why)
{
    char text[sizeof target->way->hints], *rest = NULL, line[1024];
    const char *path = target->t->o.hints_file;
    for (char **variable = environ; *variable; variable++)
        take_hint(info, *variable);
    if (*path) {
        FILE *file = fopen(path, "r");
        if (!file)
            return why_not(why, "hints (-U): %s: %s", path, strerror(errno));
        while (fgets(line, sizeof line, file))
            take_hint(info, line);
        fclose(file);
    }
    memcpy(text, target->way->hints, sizeof text);
    for (char *word = strtok_r(text, ":", &rest); word; word = strtok_r(NULL, ":", &rest)) {
        char *value = strchr(word, '=');
        if (!value)
            return why_not(why, "MPIIO: hint '%s' has no value", word);
        *value = '\0';
        MPI_Info_set(info, word, value + 1);
    }
    return 0;
}

static void show_hints(const struct target *target, const char *title, MPI_Info info)
{
    int n = 0, there;
    if (!target->t->o.show_hints || target->t->rank != 0)
        return;
    fprintf(stderr, "%s {\n", title);
    MPI_Info_get_nkeys(info, &n);
    for (int i = 0; i < n; i++) {
        char name[MPI_MAX_INFO_KEY + 1], value[512];
        MPI_Info_get_nthkey(info, i, name);
        MPI_Info_get(info, name, (int)sizeof value - 1, value, &there);
        fprintf(stderr, "\t%s = %s\n", name, there ? value : "");
    }
    fprintf(stderr, "}\n");
}

/* A segment of transfers, of which this task's block is visible. */
static int set_view(struct file *f)
{
    struct shape shape = view_shape(&f->kept);
    int all = (int)shape.all, count = (int)shape.count, start = (int)shape.start;
    MPI_Type_contiguous((int)f->kept.t->o.transfer, MPI_BYTE, &f->transfer);
    MPI_Type_commit(&f->transfer);
    MPI_Type_create_subarray(1, &all, &count, &start, MPI_ORDER_C, f->transfer, &f->view);
    MPI_Type_commit(&f->view);
    return MPI_File_set_view(f->f, 0, f->transfer, f->view, "native", MPI_INFO_NULL);
}

static int preallocate(struct file *f)
{
    const struct test *t = f->kept.t;
    int64_t tasks = t->o.own_file ? 1 : t->ranks;
    if (!t->o.preallocate || !f->kept.writing)
        return MPI_SUCCESS;
    return MPI_File_preallocate(f->f, t->o.segments * t->o.block * tasks);
}

static int open_file(struct file *f, MPI_Info info, char *why)
{
    const struct target *target = &f->kept;
    int mode = target->writing ? MPI_MODE_CREATE | MPI_MODE_WRONLY : MPI_MODE_RDONLY;
    MPI_Info used;
    if (mpiio_hints(target, info, why))
        return -1;
    show_hints(target, "hints passed to MPI_File_open()", info);
    int rc = MPI_File_open(target->comm, f->path, mode | MPI_MODE_UNIQUE_OPEN, info, &f->f);
    if (rc != MPI_SUCCESS)
        return failed(why, f->path, "MPI_File_open", rc);
    if (target->t->o.show_hints && MPI_File_get_info(f->f, &used) == MPI_SUCCESS) {
        show_hints(target, "hints returned from opened file", used);
        MPI_Info_free(&used);
    }
    if ((rc = preallocate(f)) != MPI_SUCCESS)
        return failed(why, f->path, "MPI_File_preallocate", rc);
    if (target->way->view && (rc = set_view(f)) != MPI_SUCCESS)
        return failed(why, f->path, "MPI_File_set_view", rc);
    return 0;
}

static int mpiio_open(const struct target *target, void **file, char *why)
{
    struct file *f = calloc(1, sizeof *f);
    MPI_Info info;
    if (!f)
        return why_not(why, "no memory");
    f->kept = *target;
    snprintf(f->path, sizeof f->path, "%s", target->path);
    MPI_Info_create(&info);
    int rc = open_file(f, info, why);
    MPI_Info_free(&info);
    if (rc)
        free(f);
    else
        *file = f;
    return rc;
}

static int call(struct file *f, int writing, char *buf, int bytes, MPI_Offset at, MPI_Status *done)
{
    int all = f->kept.t->o.collective, count = f->kept.way->view ? 1 : bytes;
    MPI_Datatype type = f->kept.way->view ? f->transfer : MPI_BYTE;
    if (writing)
        return all ? MPI_File_write_at_all(f->f, at, buf, count, type, done)
                   : MPI_File_write_at(f->f, at, buf, count, type, done);
    return all ? MPI_File_read_at_all(f->f, at, buf, count, type, done)
               : MPI_File_read_at(f->f, at, buf, count, type, done);
}

static int mpiio_move(void *file, int writing, char *buf, int64_t bytes, int64_t offset, char *why)
{
    struct file *f = file;
    MPI_Offset at = f->kept.way->view ? view_transfer(&f->kept, offset) : offset;
    MPI_Status done;
    int moved = 0;
    int rc = call(f, writing, buf, (int)bytes, at, &done);
    if (rc != MPI_SUCCESS)
        return failed(why, f->path, writing ? "writing" : "reading", rc);
    MPI_Get_elements(&done, MPI_BYTE, &moved);
    if (moved != bytes)
        return why_not(why, "%s: offset %lld: %d of %lld bytes were moved", f->path,
                       (long long)offset, moved, (long long)bytes);
    return 0;
}

static int mpiio_sync(void *file, char *why)
{
    struct file *f = file;
    int rc = MPI_File_sync(f->f);
    return rc == MPI_SUCCESS ? 0 : failed(why, f->path, "MPI_File_sync", rc);
}

static int mpiio_close(void *file, char *why)
{
    struct file *f = file;
    int rc = MPI_File_close(&f->f);
    if (rc != MPI_SUCCESS)
        failed(why, f->path, "MPI_File_close", rc);
    if (f->kept.way->view) {
        MPI_Type_free(&f->view);
        MPI_Type_free(&f->transfer);
    }
    free(f);
    return rc == MPI_SUCCESS ? 0 : -1;
}

static int mpiio_size(const char *path, int64_t *bytes, char *why)
{
    MPI_File f;
    MPI_Offset size;
    int rc = MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &f);
    if (rc != MPI_SUCCESS)
        return failed(why, path, "MPI_File_open", rc);
    rc = MPI_File_get_size(f, &size);
    MPI_File_close(&f);
    if (rc != MPI_SUCCESS)
        return failed(why, path, "MPI_File_get_size", rc);
    *bytes = size;
    return 0;
}

static int mpiio_remove(const char *path, char *why)
{
    int class = MPI_SUCCESS, rc = MPI_File_delete(path, MPI_INFO_NULL);
    if (rc != MPI_SUCCESS)
        MPI_Error_class(rc, &class);
    return rc == MPI_SUCCESS || class == MPI_ERR_NO_SUCH_FILE
               ? 0
               : failed(why, path, "MPI_File_delete", rc);
}

const struct back_end back_end_mpiio = {.name = "MPIIO",
                                        .help = "MPI-IO; hints are MPI's: MPIIO:view:cb_nodes=2",
                                        .views = 1,
                                        .refuse = mpiio_refuse,
                                        .open = mpiio_open,
                                        .move = mpiio_move,
                                        .sync = mpiio_sync,
                                        .close = mpiio_close,
                                        .size = mpiio_size,
                                        .remove = mpiio_remove};
