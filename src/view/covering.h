/* Making the covers of a plan (cover.h): a layer of small files, then one overlay a cover.
 *
 *   layer      links as they were, whiteouts for absences, the times of folders: the job's own
 *   staged     the files with their bytes, the same for all jobs
 *   original   what the cover lies on; left out under a cover that is complete
 *
 * For brigade-rank alone. Calls return 0 or -errno; nothing is undone on failure: the process that
 * calls is there for this only, and the job's folder goes with the job.
 */
#ifndef BRG_VIEW_COVERING_H
#define BRG_VIEW_COVERING_H

#include "image/index.h"

struct covering {
    const struct brg_index *index;
    const uint8_t *marks; /* cover_plan() */
    const char *staged;   /* the staged tree */
    const char *layer;    /* a folder that is not there yet */
    uint32_t mounted;     /* out: covers that are mounted */
    int refused;          /* out: errno of the last cover that could not be, or 0 */
};

/* Makes the layer. What the kernel keeps from ordinary users (whiteouts before Linux 5.8, marks of
 * complete folders before 6.6) is left out: more is then asked of the original. */
int covering_make_layer(const struct covering *c);

/* Mounts the covers; to be called in a mount namespace of one's own. A cover that the kernel does
 * not take (a file system that cannot lie under an overlay, mounts inside it) is left out. */
void covering_mount(struct covering *c);

#endif
