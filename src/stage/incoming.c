/* See incoming.h. */
#include "stage/incoming.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "stage/remove.h"

#define PREFIX "incoming-"
#define ROOM 256

static int name_of(char *out, const char *name)
{
    return folder_job_check(name, NULL) ||
                   (size_t)snprintf(out, ROOM, PREFIX "%s", name) >= (size_t)ROOM
               ? -EINVAL
               : 0;
}

int incoming_make(struct folder *f, const char *name, struct brg_error *err)
{
    char text[ROOM];
    if (name_of(text, name))
        return brg_error_set(err, -EINVAL, "'%s' cannot name what is carried", name);
    if (mkdirat(f->fd, text, 0700))
        return brg_error_system(err, -errno, "cannot make %s/%s", f->path, text);
    return 0;
}

/* brigade-<uid>.land-: how a carried program is called. */
static size_t land_prefix(char *out, size_t room)
{
    return (size_t)snprintf(out, room, "brigade-%u.land-", (unsigned)geteuid());
}

/* Only one that was carried: the installed program is not called so. */
static void remove_myself(const char *name)
{
    char path[PATH_MAX], land[ROOM];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    size_t prefix = land_prefix(land, sizeof land);
    if (n <= 0)
        return;
    path[n] = '\0';
    const char *last = strrchr(path, '/');
    if (last && strncmp(last + 1, land, prefix) == 0 && strcmp(last + 1 + prefix, name) == 0)
        unlink(path);
}

void incoming_remove(const char *base, const char *name)
{
    struct folder f;
    char text[ROOM];
    if (!name_of(text, name) && !folder_open(&f, base, 0, NULL)) {
        remove_tree(f.fd, text);
        folder_close(&f);
    }
    remove_myself(name);
}

struct sweep {
    uint64_t idle_s;
    int dry_run;
    void (*on_each)(void *user, int parent, const char *name);
    void *user;
};

static void sweep_in(int parent, const char *prefix, const struct sweep *by)
{
    struct stat st;
    int copy = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    if (!dir && copy >= 0)
        close(copy);
    for (struct dirent *d; dir && (d = readdir(dir));) {
        if (strncmp(d->d_name, prefix, strlen(prefix)) != 0 ||
            fstatat(parent, d->d_name, &st, AT_SYMLINK_NOFOLLOW) || st.st_uid != geteuid() ||
            time(NULL) - st.st_ctime < (time_t)by->idle_s)
            continue;
        by->on_each(by->user, parent, d->d_name);
        if (!by->dry_run)
            remove_tree(parent, d->d_name);
    }
    if (dir)
        closedir(dir);
}

void incoming_sweep(struct folder *f, const char *base, uint64_t idle_s, int dry_run,
                    void (*on_each)(void *user, int parent, const char *name), void *user)
{
    struct sweep by = {idle_s, dry_run, on_each, user};
    char land[ROOM];
    int base_fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    sweep_in(f->fd, PREFIX, &by);
    land_prefix(land, sizeof land);
    if (base_fd >= 0) {
        sweep_in(base_fd, land, &by);
        close(base_fd);
    }
}
