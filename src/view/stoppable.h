/* Whether a program can be stopped before it does anything. For brigade-rank. */
#ifndef BRG_VIEW_STOPPABLE_H
#define BRG_VIEW_STOPPABLE_H

/* NULL if Brigade's libraries will be in the process that `file` becomes, searched in `path_list`
 * as execvp does; otherwise why not, in words. */
const char *stoppable(const char *file, const char *path_list);

/* The same of a program that is to be a Python: one itself, or a script that names one as its
 * interpreter. If the script names `env NAME`, *program becomes what env would execute, in memory
 * that stays. */
const char *stoppable_python(char *const **program, const char *path_list);

#endif
