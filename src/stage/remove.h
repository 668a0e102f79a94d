/* Removing a tree without ever following a link. */
#ifndef BRG_STAGE_REMOVE_H
#define BRG_STAGE_REMOVE_H

/* Removes `name` in the directory parent, with all below it. Goes on past what cannot be removed.
 * Returns 0, or the first -errno; a name that is not there is no error. */
int remove_tree(int parent, const char *name);

#endif
