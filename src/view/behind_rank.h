/* Programs behind wrappers, for brigade-rank. See behind.h. */
#ifndef BRG_VIEW_BEHIND_RANK_H
#define BRG_VIEW_BEHIND_RANK_H

#include "view/view.h"

/* What the wrapper's processes are told: how the program is forked, what it is known by
 * (BRG_FORK_BEHIND_VARIABLE), and the user's wishes, or NULL. */
struct behind {
    const char *kind, *word, *pins;
};

/* Whether `file`, executed with `argv`, is that program: a Python's script by its name at least, if
 * it is yet to be searched. */
int behind_is(const struct view *v, const struct behind *b, const char *file, char *const argv[]);

/* Into this process's environment, which is going to execute `file`: if that looks like the
 * program, it is marked as looked at. 0 or -ENOMEM. */
int behind_leave(const struct view *v, const struct behind *b, const char *file,
                 char *const argv[]);

/* Out of it, so that children of the program are not taken for it. 0, or -ENOENT. */
int behind_take(struct behind *b);

/* How many of it this node has: those that a launcher like torchrun tells its processes, or as
 * fork_width() says; 0: not known. */
int behind_width(const struct behind *b);

/* Whether a debugger or tracer has this process: it would lose the rank. */
int behind_is_traced(void);

#endif
