/* Jobs of this user that have died on this node: how they are told from live ones, and what is done
 * about them. A job is dead when nobody uses its state, its `brigade run` is not known to be alive,
 * and it is older than an idle time. What must stay true: when in doubt, it stays.
 */
#ifndef BRG_STAGE_DEAD_H
#define BRG_STAGE_DEAD_H

#include <stdint.h>

#include "stage/folder.h"

/* What the caller knows: `live` lists all live jobs of the host `launcher` (jobs are named
 * HOST-PID), as of a moment ago. A job of that host which is not listed needs no idle time but that
 * moment's. A standing job is dead when it is in `over`. Each may be NULL. */
struct dead_known {
    const char *live, *launcher, *over;
    uint64_t idle_s;
    int all; /* standing jobs too */
};

/* Why a job must be left alone; "" if it is dead. May use room. */
const char *dead_why_not(const struct dead_known *known, const char *id, int jobs_fd,
                         const char *job, char *room, size_t size);

/* Calls on_job for each job of each staged folder; it may remove both. */
void dead_each(struct folder *f,
               void (*on_job)(void *user, const char *id, int jobs_fd, const char *job),
               void *user);

/* Removes dead jobs other than `own`, and with an image's last one the image. Says nothing. */
void dead_sweep(struct folder *f, const struct dead_known *known, const char *own);

/* Removes the jobs of the staged folder `id` whose names begin with `start`; the folder stays.
 * Returns whether there was any. */
int dead_drop(struct folder *f, const char *id, const char *start);

/* Removes a job, wherever it is in `base`, and what nobody holds: after a killed process. */
void dead_forget(const char *base, const char *job);

#endif
