/* execve and execvp as a program under the view sees them. For the hooks and for the wrapper.
 *
 * Safe between vfork and exec: only the stack is used (about 35 KiB).
 */
#ifndef BRG_VIEW_EXEC_H
#define BRG_VIEW_EXEC_H

#include "view/program.h"

#include <limits.h>

enum {
    EXEC_MANY = 100000 /* arguments or variables: then the stack could be too small */
};

/* The call that does it in the end, as execve(2). */
typedef int exec_call(const char *path, char *const argv[], char *const envp[]);

/* Executes `path`: from node memory where the image has it, plainly where it has not. Returns
 * only on failure, with errno set, as execve does. */
int exec_path(const struct view *v, const char *path, char *const argv[], char *const envp[],
              exec_call *call);

/* Executes `file`, searched in `path_list` (NULL: the system's default) by the rules of execvp:
 * the image answers which candidates exist; what the kernel does not know how to execute is given
 * to /bin/sh. Returns only on failure, with errno set. */
int exec_search(const struct view *v, const char *file, const char *path_list, char *const argv[],
                char *const envp[], exec_call *call);

/* Whether `path`, resolved as `p`, is to have brigade-rank in front of it; see behind_is_near(). */
int exec_is_behind(const struct view *v, const struct program *p, const char *path,
                   char *const argv[], char rank[PATH_MAX]);

/* How many strings there are before the NULL. */
size_t exec_count(char *const strings[]);

#endif
