/* LAMINAR: libbrigade_io. Its calls are always collective; closing a file that was written
 * publishes it, and (-e) has it on disk by then. Hints are the library's own. */
#include <mpi.h> /* before brigade/io.h, which then has brg_file_open */

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "brigade/io.h"
#include "ior.h"

struct file {
    brg_file *f;
    int writing;
};

static const char *laminar_refuse(const struct test *t, const struct way *way)
{
    (void)way;
    return t->o.fsync_each ? "LAMINAR: a file is synced as a whole (-e), not write by write (-Y)"
                           : NULL;
}

static int failed(char *why, const struct brg_error *err)
{
    return why_not(why, "%s", err->text);
}

static int laminar_open(const struct target *target, void **file, char *why)
{
    const struct options *o = &target->t->o;
    struct brg_error err = {0};
    char hints[sizeof target->way->hints + 16];
    int there = access(target->path, F_OK) == 0;
    MPI_Bcast(&there, 1, MPI_INT, 0, target->comm); /* nodes need not see the same at once */
    unsigned flags = BRG_READ;
    struct file *f = calloc(1, sizeof *f);
    if (!f)
        return why_not(why, "no memory");
    f->writing = target->writing;
    if (target->writing)
        flags = o->use_existing && there ? BRG_WRITE : BRG_WRITE | BRG_CREATE;
    snprintf(hints, sizeof hints, "%s%ssync=%s", target->way->hints, *target->way->hints ? ":" : "",
             o->fsync ? "yes" : "no");
    if (brg_file_open(target->comm, target->path, flags, hints, &f->f, &err)) {
        free(f);
        return failed(why, &err);
    }
    *file = f;
    return 0;
}

static int laminar_move(void *file, int writing, char *buf, int64_t bytes, int64_t offset,
                        char *why)
{
    struct file *f = file;
    struct brg_error err = {0};
    int rc = writing ? brg_file_write(f->f, (uint64_t)offset, buf, (size_t)bytes, &err)
                     : brg_file_read(f->f, (uint64_t)offset, buf, (size_t)bytes, &err);
    return rc ? failed(why, &err) : 0;
}

static int laminar_sync(void *file, char *why)
{
    (void)file; /* by the commit in laminar_close: hint sync */
    (void)why;
    return 0;
}

static int laminar_close(void *file, char *why)
{
    struct file *f = file;
    struct brg_error err = {0};
    int rc = f->writing ? brg_file_commit(f->f, &err) : 0;
    if (brg_file_close(f->f, rc ? NULL : &err) != 0)
        rc = -1;
    free(f);
    return rc ? failed(why, &err) : 0;
}

/* Files in `folder` (a path with room behind it) whose names begin so. */
static void remove_beginning(char *folder, size_t room, const char *begin)
{
    size_t length = strlen(folder);
    DIR *open = opendir(folder);
    for (struct dirent *entry; open && (entry = readdir(open));)
        if (strncmp(entry->d_name, begin, strlen(begin)) == 0 && entry->d_name[0] &&
            strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            snprintf(folder + length, room - length, "/%s", entry->d_name);
            if (unlink(folder) != 0 && (errno == EISDIR || errno == EPERM)) {
                remove_beginning(folder, room, "");
                rmdir(folder);
            }
            folder[length] = '\0';
        }
    if (open)
        closedir(open);
}

/* Checksums are beside a file, and the parts of layout=parts in a hidden folder. */
static int laminar_remove(const char *path, char *why)
{
    char place[PATH_ROOM + 280], begin[300];
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    snprintf(place, sizeof place, "%s.sums", path);
    if (unlink(place) != 0 && errno != ENOENT)
        return why_not(why, "%s: removing: %s", place, strerror(errno));
    snprintf(begin, sizeof begin, ".%s.brg-", name);
    snprintf(place, sizeof place, "%.*s", name > path ? (int)(name - path - 1) : 1,
             name > path ? path : ".");
    remove_beginning(*place ? place : strcpy(place, "/"), sizeof place, begin);
    return posix_remove(path, why);
}

static int laminar_size(const char *path, int64_t *bytes, char *why)
{
    struct brg_error err = {0};
    brg_file *f;
    if (brg_file_open_alone(path, BRG_READ, NULL, &f, &err))
        return failed(why, &err);
    *bytes = (int64_t)brg_file_size(f);
    return brg_file_close(f, &err) ? failed(why, &err) : 0;
}

const struct back_end back_end_laminar = {
    .name = "LAMINAR",
    .help = "libbrigade_io, always collective; hints are its own: LAMINAR:checksums=no",
    .collective = 1,
    .refuse = laminar_refuse,
    .open = laminar_open,
    .move = laminar_move,
    .sync = laminar_sync,
    .close = laminar_close,
    .size = laminar_size,
    .remove = laminar_remove};
