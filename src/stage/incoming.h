/* What another carrier than MPI (sbcast) brings to a node before it is staged from there.
 *
 *   <base>/brigade-<uid>/incoming-<name>/    made by us, 0700; the carrier writes the image into it
 *   <base>/brigade-<uid>.land-<name>         this program, where it was carried, too
 *
 * What must stay true: both go, however staging ends; what a killed one left goes by age.
 */
#ifndef BRG_STAGE_INCOMING_H
#define BRG_STAGE_INCOMING_H

#include <stdint.h>

#include "stage/folder.h"

/* Makes the folder `name` (named like a job) to carry into. 0 or -errno. */
int incoming_make(struct folder *f, const char *name, struct brg_error *err);

/* Removes it, and the program that runs if that was carried under this name. Never fails. */
void incoming_remove(const char *base, const char *name);

/* Calls on_each with the name of each that is older than idle_s, then removes it unless dry_run. */
void incoming_sweep(struct folder *f, const char *base, uint64_t idle_s, int dry_run,
                    void (*on_each)(void *user, int parent, const char *name), void *user);

#endif
