/* See folder.h. */
#include "stage/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/io.h"
#include "base/root.h"
#include "stage/fault.h"
#include "stage/job_state.h"
#include "stage/remove.h"
#include "stage/trust.h"

#define LOCK_TRIES 3000 /* of 10 ms */
#define OPEN_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static int refuse(struct folder *f, int code, const char *what, struct brg_error *err)
{
    return brg_error_set(err, code,
                         "%s %s: Brigade does not use it. Remove it, or choose another "
                         "folder with BRIGADE_NODE_DIR",
                         f->path, what);
}

/* In a folder like /dev/shm everybody may make names: what lies there may be a trap. */
static int check_owner(struct folder *f, struct brg_error *err)
{
    struct stat st;
    if (fstat(f->fd, &st))
        return brg_error_system(err, -errno, "cannot look at %s", f->path);
    if (st.st_uid != geteuid())
        return refuse(f, -EPERM, "belongs to another user", err);
    if (st.st_mode & 077)
        return refuse(f, -EPERM, "can be entered by others", err);
    return 0;
}

static int open_in_base(struct folder *f, const char *base, int create, struct brg_error *err)
{
    char name[32];
    snprintf(name, sizeof name, "brigade-%u", (unsigned)geteuid());
    int n = snprintf(f->path, sizeof f->path, "%s/%s", base, name);
    if (n < 0 || (size_t)n >= sizeof f->path)
        return brg_error_set(err, -ENAMETOOLONG, "the path of the node's folder is too long");
    int base_fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (base_fd < 0)
        return brg_error_system(err, -errno,
                                "cannot open the node's memory folder %s (choose "
                                "another one with BRIGADE_NODE_DIR)",
                                base);
    int rc = 0;
    if (create && mkdirat(base_fd, name, 0700) && errno != EEXIST)
        rc = brg_error_system(err, -errno, "cannot make %s", f->path);
    if (!rc) {
        f->fd = openat(base_fd, name, OPEN_DIR);
        if (f->fd < 0 && (errno == ELOOP || errno == ENOTDIR))
            rc = refuse(f, -ENOTDIR, "is not a directory", err);
        else if (f->fd < 0)
            rc = brg_error_system(err, -errno, "cannot open %s", f->path);
    }
    close(base_fd);
    return rc;
}

int folder_open(struct folder *f, const char *base, int create, struct brg_error *err)
{
    f->fd = f->lock_fd = -1;
    int rc = trust_folder(base, err);
    if (!rc)
        rc = open_in_base(f, base, create, err);
    if (!rc)
        rc = check_owner(f, err);
    if (!rc) {
        f->lock_fd = openat(f->fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (f->lock_fd < 0)
            rc = brg_error_system(err, -errno, "cannot open %s/lock", f->path);
    }
    if (rc)
        folder_close(f);
    return rc;
}

void folder_close(struct folder *f)
{
    if (f->lock_fd >= 0)
        close(f->lock_fd);
    if (f->fd >= 0)
        close(f->fd);
    f->fd = f->lock_fd = -1;
}

int folder_lock(struct folder *f, struct brg_error *err)
{
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (flock(f->lock_fd, LOCK_EX | LOCK_NB) == 0)
            return 0;
        if (errno != EWOULDBLOCK && errno != EINTR)
            return brg_error_system(err, -errno, "cannot lock %s/lock", f->path);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return brg_error_set(err, -ETIMEDOUT,
                         "%s/lock has been held for half a minute: is another "
                         "brigade-stage of yours stopped on this node?",
                         f->path);
}

void folder_unlock(struct folder *f)
{
    flock(f->lock_fd, LOCK_UN);
}

int folder_job_check(const char *job, struct brg_error *err)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                  "._:@+-";
    size_t n = strlen(job);
    if (n == 0 || n > 200 || job[0] == '.' || strspn(job, allowed) != n)
        return brg_error_set(err, -EINVAL,
                             "'%s' cannot name a job: use letters, digits and "
                             "._:@+-, at most 200",
                             job);
    return 0;
}

/* ---- folders being made or removed ---- */

/* With the lock held, so that no sweep comes between making and flocking. */
static int tmp_create_locked(struct folder *f, const char *id, struct folder_tmp *tmp,
                             struct brg_error *err)
{
    for (unsigned i = 0;; i++) { /* the number may be taken in another PID namespace */
        snprintf(tmp->name, sizeof tmp->name, i ? "%s.tmp-%ld.%u" : "%s.tmp-%ld", id,
                 (long)getpid(), i);
        if (mkdirat(f->fd, tmp->name, 0700) == 0)
            break;
        if (errno != EEXIST || i == 100)
            return brg_error_system(err, -errno, "cannot make %s/%s", f->path, tmp->name);
    }
    tmp->fd = openat(f->fd, tmp->name, OPEN_DIR);
    if (tmp->fd < 0 || flock(tmp->fd, LOCK_EX | LOCK_NB))
        return brg_error_system(err, -errno, "cannot open %s/%s", f->path, tmp->name);
    return 0;
}

int folder_tmp_create(struct folder *f, const char *id, struct folder_tmp *tmp,
                      struct brg_error *err)
{
    tmp->fd = -1;
    tmp->name[0] = '\0';
    int rc = folder_lock(f, err);
    if (rc)
        return rc;
    rc = tmp_create_locked(f, id, tmp, err);
    folder_unlock(f);
    if (rc)
        folder_tmp_remove(f, tmp);
    return rc;
}

void folder_tmp_remove(struct folder *f, struct folder_tmp *tmp)
{
    if (tmp->name[0])
        remove_tree(f->fd, tmp->name);
    if (tmp->fd >= 0)
        close(tmp->fd);
    tmp->fd = -1;
    tmp->name[0] = '\0';
}

/* ---- jobs ---- */

static int open_dir_at(int parent, const char *name, int create)
{
    if (create && mkdirat(parent, name, 0700) && errno != EEXIST)
        return -1;
    return openat(parent, name, OPEN_DIR);
}

int folder_job_create(int staged_fd, const struct folder_job *job, uint32_t n_entries,
                      struct brg_error *err)
{
    int rc = 0, job_fd = -1, jobs_fd = open_dir_at(staged_fd, "jobs", 1);
    if (jobs_fd >= 0)
        job_fd = open_dir_at(jobs_fd, job->name, 1);
    rc = job_fd < 0 ? -errno : job_state_create(staged_fd, job_fd, n_entries, job);
    if (!rc)
        root_leave_mounts(job_fd, BRG_MOUNTS_NAME); /* else ranks in other mounts are plain */
    if (job_fd >= 0)
        close(job_fd);
    if (jobs_fd >= 0)
        close(jobs_fd);
    if (rc)
        return brg_error_system(err, rc, "cannot make the state of job %s", job->name);
    return 0;
}

static int staged_entries(int staged_fd, uint32_t *n_entries)
{
    struct brg_index x;
    int fd = openat(staged_fd, "index", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t n = fd < 0 ? -errno : brg_io_pread(fd, &x, sizeof x, 0);
    if (fd >= 0)
        close(fd);
    if (n != sizeof x || x.magic != BRG_INDEX_MAGIC || x.version != BRG_INDEX_VERSION)
        return -EBADMSG;
    *n_entries = x.n_entries;
    return 0;
}

static int job_add_locked(struct folder *f, const char *id, const struct folder_job *job,
                          uint32_t n_entries, int *found, struct brg_error *err)
{
    int rc = 0, fd = openat(f->fd, id, OPEN_DIR);
    *found = 0;
    if (fd < 0)
        return errno == ENOENT ? 0
                               : brg_error_system(err, -errno, "cannot open %s/%s", f->path, id);
    if (n_entries == BRG_NONE && staged_entries(fd, &n_entries))
        rc = brg_error_set(err, -EUCLEAN, "the staged folder %s/%s is damaged: remove it", f->path,
                           id);
    if (!rc)
        rc = folder_job_create(fd, job, n_entries, err);
    close(fd);
    *found = !rc;
    return rc;
}

int folder_job_add(struct folder *f, const char *id, const struct folder_job *job,
                   uint32_t n_entries, int *found, struct brg_error *err)
{
    int rc = folder_lock(f, err);
    if (rc)
        return rc;
    rc = job_add_locked(f, id, job, n_entries, found, err);
    folder_unlock(f);
    return rc;
}

int folder_publish(struct folder *f, const char *id, const struct folder_job *job,
                   uint32_t n_entries, struct folder_tmp *tmp, int *found, struct brg_error *err)
{
    int rc = folder_lock(f, err);
    if (rc)
        return rc;
    rc = job_add_locked(f, id, job, n_entries, found, err);
    if (!rc && !*found) {
        rc = fault_at(FAULT_PUBLISH, 0) ? -EIO : renameat(f->fd, tmp->name, f->fd, id) ? -errno : 0;
        if (rc)
            brg_error_system(err, rc, "cannot publish %s/%s", f->path, id);
        else
            tmp->name[0] = '\0'; /* nothing to remove any more */
    }
    folder_unlock(f);
    if (!rc)
        folder_tmp_remove(f, tmp);
    return rc;
}

static int is_empty(int parent, const char *name)
{
    int fd = openat(parent, name, OPEN_DIR), empty = 1;
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir)
        return 1;
    for (struct dirent *d; (d = readdir(dir));)
        if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
            empty = 0;
    closedir(dir);
    return empty;
}

static void job_unlink(int staged_fd, const char *job, void (*on_state)(void *, int), void *user)
{
    int jobs_fd = openat(staged_fd, "jobs", OPEN_DIR);
    int job_fd = jobs_fd >= 0 ? openat(jobs_fd, job, OPEN_DIR) : -1;
    if (job_fd >= 0) {
        int fd = openat(job_fd, "state", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && on_state)
            on_state(user, fd);
        if (fd >= 0)
            close(fd);
        close(job_fd);
        remove_tree(jobs_fd, job);
    }
    if (jobs_fd >= 0)
        close(jobs_fd);
}

int folder_job_remove(struct folder *f, const char *id, const char *job, int keep,
                      void (*on_state)(void *user, int fd), void *user, int *removed,
                      struct brg_error *err)
{
    struct folder_tmp old = {.fd = -1};
    *removed = 0;
    int rc = folder_lock(f, err);
    if (rc)
        return rc;
    old.fd = openat(f->fd, id, OPEN_DIR);
    if (old.fd >= 0)
        job_unlink(old.fd, job, on_state, user);
    if (old.fd >= 0 && !keep && is_empty(old.fd, "jobs")) {
        /* Renamed first: to others it is gone at once, however long the removal takes. */
        snprintf(old.name, sizeof old.name, "%s.tmp-%ld.old", id, (long)getpid());
        flock(old.fd, LOCK_EX | LOCK_NB);
        if (renameat(f->fd, id, f->fd, old.name)) {
            rc = brg_error_system(err, -errno, "cannot remove %s/%s", f->path, id);
            old.name[0] = '\0';
        }
    }
    folder_unlock(f);
    *removed = old.name[0] != '\0';
    folder_tmp_remove(f, &old);
    return rc;
}
