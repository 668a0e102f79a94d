/* Whether a program can be stopped before it does anything. For brigade-rank. */
#ifndef BRG_VIEW_STOPPABLE_H
#define BRG_VIEW_STOPPABLE_H

/* NULL if Brigade's libraries will be in the process that `file` becomes, searched in `path_list`
 * as execvp does; otherwise why not, in words. */
const char *stoppable(const char *file, const char *path_list);

#endif
