/* The template of ranks in a program under the view. See hooks_fork.c. */
#ifndef BRG_VIEW_HOOKS_FORK_H
#define BRG_VIEW_HOOKS_FORK_H

#include "fork/template.h"
#include "view/hooks.h"

/* Sets v->fork if this process was started as a template. From the library's constructor, with what
 * that is given. */
void fork_begin(struct view *v, char **argv, char **envp);

/* Waits for a request that this template can serve; 0: no more will come. */
int fork_next(struct view *v, struct template_request *request);

/* In the child, after template_child(): its view is the rank's. Then: signals may come, and nothing
 * of a template is left. */
void fork_become(struct view *v, const struct template_request *request);
void fork_over(struct view *v);

/* The template's words for the report; the last ones count. */
void fork_words(const struct view *v, const char *text);

/* Whether `path` was a message; then it has been done, and *length bytes of an answer are in `buf`.
 */
int fork_message_of(struct view *v, const char *path, char *buf, size_t size, size_t *length);

#endif
