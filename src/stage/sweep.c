/* Removing tmp folders that nobody holds. See folder.h. */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "stage/folder.h"

#define OPEN_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* Takes over an abandoned tmp folder, or returns -1. Lock held. */
static int take_over(struct folder *f, const char *name)
{
    int fd = openat(f->fd, name, OPEN_DIR);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static void sweep_one(struct folder *f, const char *name, const struct folder_sweeper *by)
{
    struct folder_tmp tmp = {.fd = -1};
    if (!strstr(name, ".tmp-") || strlen(name) >= sizeof tmp.name || folder_lock(f, NULL))
        return;
    tmp.fd = take_over(f, name);
    folder_unlock(f);
    if (tmp.fd < 0)
        return;
    if (by && by->on_each)
        by->on_each(by->user, name, tmp.fd);
    if (by && by->dry_run) {
        close(tmp.fd);
        return;
    }
    strcpy(tmp.name, name);
    folder_tmp_remove(f, &tmp);
}

void folder_sweep(struct folder *f, const struct folder_sweeper *by)
{
    int copy = openat(f->fd, ".", OPEN_DIR);
    DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    if (!dir) {
        if (copy >= 0)
            close(copy);
        return;
    }
    for (struct dirent *d; (d = readdir(dir));)
        sweep_one(f, d->d_name, by);
    closedir(dir);
}
