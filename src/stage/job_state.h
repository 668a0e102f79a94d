/* The state of a job on this node, as stagers make it: `jobs/<job>/state` (view/state.h). */
#ifndef BRG_STAGE_JOB_STATE_H
#define BRG_STAGE_JOB_STATE_H

#include <stdint.h>

#include "stage/folder.h"

/* Makes the state in the job's folder `job_fd`, for n_entries, with the changed ones marked. One
 * that an earlier job of the same name has left (older than this process, used by nobody) is
 * replaced. Otherwise another stager of this job has made it: the changed ones are marked there.
 * Lock held, unless the folder is not published. Returns 0 or -errno. */
int job_state_create(int staged_fd, int job_fd, uint32_t n_entries, const struct folder_job *job);

#endif
