/* Programs behind wrappers: what a shell, env, numactl or torchrun executes, or starts.
 *
 * brigade-rank starts a wrapper in the ordinary way, and leaves in its environment what the program
 * is known by. Whichever process of the wrapper's is about to execute that, executes brigade-rank
 * in front of it once more, which then has the rank forked. What only looks like it, is executed by
 * brigade-rank as it would have been. A static wrapper, which our library is not in, executes the
 * program itself: that does the rest before anything of it is loaded (audit_behind.h).
 *
 * Freestanding, safe between vfork and exec.
 */
#ifndef BRG_VIEW_BEHIND_H
#define BRG_VIEW_BEHIND_H

#include "view/view.h"

#include <limits.h>

/* "KIND WORD", with KIND as of BRG_FORK_VARIABLE (fork/begin.h). WORD of Python is a script, as an
 * absolute path, or BRG_BEHIND_MODULE and the name of a module; of other programs, their file.
 * BRG_BEHIND_SEVERAL before WORD: each rank that the node's launcher knows starts more than one. */
#define BRG_FORK_BEHIND_VARIABLE "BRIGADE_FORK_BEHIND"
#define BRG_BEHIND_SEVERAL "several "
#define BRG_BEHIND_MODULE "module:"
#define BRG_BEHIND_OPTION "--behind"

enum {
    BEHIND_FRONT = 5 /* arguments that replace argv[0] */
};

/* The number of a process that brigade-rank has looked at, and left to go on. */
#define BRG_FORK_SEEN_VARIABLE "BRIGADE_FORK_SEEN"

/* Whether `path`, whose file is `real` (NULL: the one it leads to), looks like what KIND and WORD
 * tell of. */
int behind_looks_like(const struct view *v, const char *kind, const char *word, const char *real,
                      const char *path, char *const argv[]);

/* Whether it looks like the program that is waited for: then brigade-rank is to be executed, whose
 * path is put into `rank`. */
int behind_is_near(const struct view *v, const char *real, const char *path, char *const argv[],
                   char rank[PATH_MAX]);

/* The arguments for it into `args`, which has room for BEHIND_FRONT more than `argv`, and NULL. */
void behind_arguments(const char *path, char *const argv[], char **args);

#endif
