/* Whether two mount tables of one root show the same files where an image has some.
 *
 * A rank may be in another mount namespace than the stager of its node without being in a
 * container: some sites give every login, or every job, a /tmp of its own. Not freestanding.
 */
#ifndef BRG_VIEW_MOUNTS_H
#define BRG_VIEW_MOUNTS_H

#include "image/index.h"

/* Whether the mounts of this process are those of the table in the file `there`, as far as they
 * matter for the paths of `x`: the mount that each covered root lies on, those below it, and the
 * mount of whatever else the image knows. 0 if one of the tables cannot be read. */
int mounts_alike(const struct brg_index *x, const char *there);

#endif
