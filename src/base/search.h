/* The search for a program, by the rules of glibc's execvp; what a candidate is worth, the caller
 * says.
 *
 * Neither errno nor allocation: safe between vfork and exec.
 */
#ifndef BRG_BASE_SEARCH_H
#define BRG_BASE_SEARCH_H

#include <limits.h>

/* What the candidate `path` is: 0 ends the search, with success. -EACCES, -ENOENT, -ENOTDIR,
 * -ESTALE, -ENODEV and -ETIMEDOUT lead to the next one; any other -errno ends it too. */
typedef int search_try(void *context, const char *path);

/* Tries what `file` can mean, in order: with a slash only itself, otherwise one in each folder of
 * `path_list`, where nothing between colons is the working directory (NULL: the system's default).
 * `path` holds the candidate that is being tried, and afterwards the last one.
 *
 * 0, or -errno: -EACCES if any candidate was refused so and none was better, otherwise the last
 * one's; -ENOENT if `file` is empty; -ENAMETOOLONG if it, or a candidate, is too long for any file.
 * Of a folder that is too long by itself there is no candidate. */
int search_path(const char *file, const char *path_list, char path[PATH_MAX], search_try *try,
                void *context);

/* What execve would say of `path` before it reads it: 0, or -errno. */
int search_is_program(const char *path);

/* search_path for what that says 0 of. */
int search_program(const char *file, const char *path_list, char path[PATH_MAX]);

#endif
