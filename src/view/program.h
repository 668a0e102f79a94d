/* What the kernel is to execute for a program that is named by its original path.
 *
 * An ELF file with content is executed from its staged copy; a link that leads to a local file,
 * as that file; a script is taken apart as the kernel does it, so that its interpreter can be a
 * staged one. Also the environment that keeps the view in a child whose caller made a new one.
 * Freestanding, safe between vfork and exec: only the caller's memory is written.
 */
#ifndef BRG_VIEW_PROGRAM_H
#define BRG_VIEW_PROGRAM_H

#include "view/view.h"

enum {
    PROGRAM_FRONT = 8,
    PROGRAM_ENV = 16,
    PROGRAM_DROP = 4,
    PROGRAM_ARENA = 8192
};

struct program {
    const char *path;                 /* to execute; NULL: as the caller would have done */
    int n_front;                      /* arguments that replace argv[0]; 0: keep it */
    const char *front[PROGRAM_FRONT]; /* "interpreter", "its argument", "script" */
    char staged[PATH_MAX];
    char text[2][256]; /* of `#!` lines, which `front` points into */
};

/* The variable of ld.so that makes room for libraries with static TLS: an auditor shrinks it. */
#define BRG_STATIC_TLS "glibc.rtld.optional_static_tls"

/* Resolves `path` (relative to the working directory or absolute). 0, with *p filled; -errno if
 * the image knows that the kernel would refuse: -ENOENT, -ENOTDIR. */
int program_resolve(const struct view *v, const char *path, struct program *p);

/* Trial: records `path`, and the interpreter that its first line names, as executed. */
void program_record(const struct view *v, const char *path);

struct program_env {
    const char *add[PROGRAM_ENV]; /* "NAME=value"; replaces an entry of that name */
    int n_add;
    const char *drop[PROGRAM_DROP]; /* names of variables to leave out */
    int n_drop;
    char arena[PROGRAM_ARENA];
};

/* How `envp` must change for the child to keep the view. Returns whether it must. */
int program_env(const struct view *v, char *const envp[], struct program_env *e);

/* Copies `envp` with `e` applied into `out`, which has room for `n` pointers (count of envp +
 * e->n_add + 1). */
void program_env_merge(char *const envp[], const struct program_env *e, char **out, size_t n);

#endif
