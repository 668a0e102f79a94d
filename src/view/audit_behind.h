/* The program behind a wrapper that our library is not in: a static one, or one that asks the
 * kernel past any libc, as Go's do. For the auditor.
 */
#ifndef BRG_VIEW_AUDIT_BEHIND_H
#define BRG_VIEW_AUDIT_BEHIND_H

#include "view/view.h"

/* As ld.so begins, before it has loaded anything of the program's: if this process looks like the
 * program that is waited for (behind.h), and nobody has looked at it yet, it becomes brigade-rank,
 * which has the rank forked or executes the program again. Otherwise comes back. */
void audit_behind(const struct view *v);

#endif
