/* brigade-stage join: adds a job to a staged folder that stands on this node already.
 *
 * No MPI, no image, nothing is read but the staged index's head. One JSON line:
 * {"host", "found": true|false}, or {"host", "found": false, "reason"} when it is there but cannot
 * be used. What must stay true: a folder is either joined, with room for the job's counters, or
 * left as it was. With --incoming the node is made ready for an image that is carried to it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "stage/commands.h"
#include "stage/folder.h"
#include "stage/incoming.h"
#include "base/json.h"

static void tell(int found, const char *reason)
{
    struct json j = {0};
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    json_add(&j, "{\"host\":");
    json_add_string(&j, host, strlen(host));
    json_add(&j, ",\"found\":%s", found ? "true" : "false");
    if (reason) {
        json_add(&j, ",\"reason\":");
        json_add_string(&j, reason, strlen(reason));
    }
    json_add(&j, "}");
    json_print(&j, STDOUT_FILENO);
}

int join_run(const struct join_options *options)
{
    struct folder f;
    struct brg_error err = {0};
    int found = 0, removed;
    int rc = folder_job_check(options->job.name, &err);
    if (!rc)
        rc = folder_open(&f, options->base, options->incoming != NULL, &err);
    if (rc == -ENOENT) { /* nothing was ever staged here */
        tell(0, NULL);
        return 0;
    }
    if (!rc) {
        rc = folder_job_add(&f, options->id, &options->job, BRG_NONE, &found, &err);
        if (rc) /* half a state may be there */
            folder_job_remove(&f, options->id, options->job.name, 1, NULL, NULL, &removed, NULL);
        else if (options->incoming)
            rc = incoming_make(&f, options->incoming, &err);
        folder_close(&f);
    }
    tell(found, rc ? err.text : NULL);
    return rc ? EXIT_NOT_STAGED : 0;
}
