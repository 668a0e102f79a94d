/* Which variables a template has read, and whether a rank has the same. */
#ifndef BRG_VIEW_FORK_ENV_H
#define BRG_VIEW_FORK_ENV_H

#include "fork/template.h"
#include "view/view.h"

/* From here on reads by getenv are noted; until fork_env_end(), in the child. */
void fork_env_begin(void);
void fork_env_end(void);

/* Why the rank that asks cannot come from this template, in words; NULL: what was read here, and
 * what ld.so, libc and Python read before, is the same there. */
const char *fork_env_differs(const struct view *v, const struct template_request *rank);

#endif
