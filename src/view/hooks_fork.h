/* The template of ranks in a program under the view. See hooks_fork.c. */
#ifndef BRG_VIEW_HOOKS_FORK_H
#define BRG_VIEW_HOOKS_FORK_H

#include "view/hooks.h"

/* Sets v->fork if this process was started as a template. From the library's constructor. */
void fork_begin(struct view *v);

/* Whether `path` was a message; then it has been done, and *length bytes of an answer are in `buf`.
 */
int fork_message_of(struct view *v, const char *path, char *buf, size_t size, size_t *length);

#endif
