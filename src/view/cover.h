/* Which folders of an image the namespace view covers. Pure: an index in, marks out.
 *
 * A *cover* is a folder of installed software (LISTED) whose parent is none. In it lie
 *   complete folders   every name is known, and what has bytes is staged: nothing else is asked
 *   holes              folders that the trial was in, but that are not installed software: the
 *                      program works there, so the original stays, and can be written to
 * What else is not staged is reached through the cover: the original lies under it.
 *
 * What must stay true: no folder of the user's own is covered, and none that the job works in.
 */
#ifndef BRG_VIEW_COVER_H
#define BRG_VIEW_COVER_H

#include "image/index.h"

enum cover_mark {
    COVER_INSIDE = 1,   /* in a cover, or one itself */
    COVER_TOP = 2,      /* a cover */
    COVER_COMPLETE = 4, /* a FILE or SYMLINK that is staged; a DIR of nothing else, all known */
    COVER_HOLE = 8,
    COVER_MADE = 16,   /* a DIR that the cover's own layer must have */
    COVER_SPOILT = 32, /* something in it has changed: no cover */
};

enum {
    COVER_MOST = 256,  /* covers: an image of more is not for mounts */
    COVER_HOLES = 256, /* holes of all covers */
};

/* Marks each entry of the index: `marks` has n_entries bytes. `dirty` is the job's bits
 * (state.h): covers are cut so that nothing that has changed is in one. `cwd` is the job's working
 * directory: no cover lies above it. Returns the number of covers. */
uint32_t cover_plan(const struct brg_index *x, const uint64_t *dirty, const char *cwd,
                    uint8_t *marks);

#endif
