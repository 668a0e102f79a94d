/* Whether a program can be stopped before it does anything. For brigade-rank. */
#ifndef BRG_VIEW_STOPPABLE_H
#define BRG_VIEW_STOPPABLE_H

#include "view/view.h"

/* NULL if Brigade's libraries will be in the process that `file` becomes, searched in `path_list`
 * as exec_search() does; otherwise why not, in words. Only if v->mode is VIEW_SERVE. */
const char *stoppable(const struct view *v, const char *file, const char *path_list);

/* The same of a program that is to be a Python: one itself, or a script that names one as its
 * interpreter. If the script names `env NAME`, *program, its words, become what env would execute,
 * in memory that stays. */
const char *stoppable_python(const struct view *v, const char *file, char *const **program,
                             const char *path_list);

/* Whether it is one at all, and not something by a Python's name that starts one, as pyenv's. */
int stoppable_is_python(const struct view *v, const char *file, char *const *program,
                        const char *path_list);

#endif
