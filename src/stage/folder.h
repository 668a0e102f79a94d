/* The folder `<base>/brigade-<uid>` of a node: who may be in it, and what appears and goes in it.
 *
 *   lock                     flock: held for moments, while something appears or goes
 *   <id>/                    a staged folder, complete by construction
 *   <id>/jobs/<job>/state    keeps the staged folder alive
 *   <id>.tmp-<pid>/          being made, or being removed; its maker holds a flock on it
 *
 * What must stay true: the folder is a real directory, ours, 0700, in a place where nobody else can
 * exchange it (trust.h), or nothing is done; everything
 * inside is reached through descriptors with O_NOFOLLOW, so that no link leads out of it; a
 * `.tmp-` folder whose flock is free belongs to nobody and may be removed.
 * Calls return 0 or -errno with text for people in *err.
 */
#ifndef BRG_STAGE_FOLDER_H
#define BRG_STAGE_FOLDER_H

#include <limits.h>
#include <stdint.h>

#include "brigade/error.h"
#include "image/format.h"

struct folder {
    int fd;              /* of <base>/brigade-<uid> */
    int lock_fd;         /* of its lock file */
    char path[PATH_MAX]; /* for error texts */
};

struct folder_tmp {
    int fd;
    char name[80]; /* "" when there is none */
};

/* Opens the folder; makes it if `create` is set, otherwise -ENOENT if it is not there. */
int folder_open(struct folder *f, const char *base, int create, struct brg_error *err);
void folder_close(struct folder *f);

/* Waits for the lock, half a minute at most. */
int folder_lock(struct folder *f, struct brg_error *err);
void folder_unlock(struct folder *f);

/* A job on this node. For the entries in `changed` the image does not answer in it: they were found
 * changed before the job (a number past the index's last entry is ignored). */
struct folder_job {
    const char *name;
    const uint32_t *changed;
    size_t n_changed;
};

/* A job's name becomes a folder's name: 1 to 200 of [A-Za-z0-9._:@+-], not starting with a dot. */
int folder_job_check(const char *job, struct brg_error *err);

/* Makes and flocks `<id>.tmp-<pid>`. */
int folder_tmp_create(struct folder *f, const char *id, struct folder_tmp *tmp,
                      struct brg_error *err);

/* Removes a tmp folder with all that is in it, and closes it. */
void folder_tmp_remove(struct folder *f, struct folder_tmp *tmp);

/* Removes tmp folders that nobody holds: what a killed process left. `by` may be NULL. */
struct folder_sweeper {
    void (*on_each)(void *user, const char *name, int fd); /* sees each before it goes */
    void *user;
    int dry_run; /* remove nothing */
};
void folder_sweep(struct folder *f, const struct folder_sweeper *by);

/* Adds job to the staged folder `id` if that is there: *found is set. The job's state is made
 * for n_entries; with n_entries BRG_NONE the number is read from the staged index. */
int folder_job_add(struct folder *f, const char *id, const struct folder_job *job,
                   uint32_t n_entries, int *found, struct brg_error *err);

/* Makes `jobs/<job>/state` inside a folder that is not published yet. */
int folder_job_create(int staged_fd, const struct folder_job *job, uint32_t n_entries,
                      struct brg_error *err);

/* Gives the tmp folder its final name, or, if somebody was faster (*found), adds the job there and
 * removes the tmp folder. */
int folder_publish(struct folder *f, const char *id, const struct folder_job *job,
                   uint32_t n_entries, struct folder_tmp *tmp, int *found, struct brg_error *err);

/* Removes the job's folder; then, unless `keep` is set or another job is there, the staged folder.
 * `on_state` (may be NULL) sees the descriptor of the job's state before it goes. What is not
 * there is no error. *removed: the staged folder went. */
int folder_job_remove(struct folder *f, const char *id, const char *job, int keep,
                      void (*on_state)(void *user, int fd), void *user, int *removed,
                      struct brg_error *err);

#endif
