/* What the kernel is to execute for a program that is named by its original path.
 *
 * An ELF file with content is executed from its staged copy, unless binary.h says otherwise; a
 * link that leads to a local file, as that file; a script is taken apart as the kernel does it, so
 * that its interpreter can be a staged one. Also the environment that keeps the view in a child
 * whose caller made a new one, or that takes it from a child that it would break.
 * Freestanding, safe between vfork and exec: only the caller's memory is written.
 */
#ifndef BRG_VIEW_PROGRAM_H
#define BRG_VIEW_PROGRAM_H

#include "view/look.h"

enum {
    PROGRAM_FRONT = 8,
    PROGRAM_ENV = 20,
    PROGRAM_DROP = 16,
    PROGRAM_ARENA = 8192
};

struct program {
    const char *path;                 /* to execute; NULL: as the caller would have done */
    int alone;                        /* without Brigade's libraries: program_env_alone() */
    int unseen;                       /* what it writes will not be noted */
    int n_front;                      /* arguments that replace argv[0]; 0: keep it */
    const char *front[PROGRAM_FRONT]; /* "interpreter", "its argument", "script" */
    char staged[PATH_MAX];
    char text[2][256]; /* of `#!` lines, which `front` points into */
};

/* The variable of ld.so that makes room for libraries with static TLS: an auditor shrinks it. */
#define BRG_STATIC_TLS "glibc.rtld.optional_static_tls"

/* That room: 16 KiB as ld.so would have had, rounded up: libraries with 8 KiB of initial-exec TLS
 * are real. */
enum {
    BRG_STATIC_TLS_BYTES = 32768
};

/* Whether a child with the environment `envp` must be started alone, whatever its file: ld.so is
 * to list what it would load (ldd), valgrind starts its tool, or the process has become another
 * user, whom our libraries are closed to. */
int program_stands_alone(const struct view *v, char *const envp[]);

/* Whether ld.so is only to list what it would load. */
int program_only_lists(char *const envp[]);

/* Whether a program starts others in a container, by its name: what is staged is not theirs. */
int program_contains(const char *path);

struct program_env {
    const char *add[PROGRAM_ENV]; /* "NAME=value"; replaces an entry of that name */
    int n_add;
    const char *drop[PROGRAM_DROP]; /* names of variables to leave out */
    int n_drop;
    char arena[PROGRAM_ARENA];
};

/* How `envp` must change for the child to keep the view. */
void program_env(const struct view *v, char *const envp[], struct program_env *e);

/* How `envp` must change for the child not to have Brigade's libraries; `everything`: nor anything
 * else of ours that other nodes could not find. */
void program_env_alone(const struct view *v, char *const envp[], int everything,
                       struct program_env *e);

/* How `path` is to be executed with `envp`: *p, and in *e what must change in the environment.
 * Not `followed`, if the way to the file counts from a folder that only the child will know, which
 * is taken to be the caller's, or there is no path (NULL): only *e says something. A trial records
 * what is executed. 0, or -errno if the image knows that the kernel would refuse: -ENOENT,
 * -ENOTDIR. */
int program_plan(const struct view *v, const char *path, int followed, char *const envp[],
                 struct program *p, struct program_env *e);

/* Where the bytes of `path` are, to be executed: *file, which may lie in *r. Returns 1 if that is
 * not `path` itself, 0 if it is or if only the kernel can tell, -errno if it cannot be executed.
 * Only if v->mode is VIEW_SERVE. */
int program_locate(const struct view *v, const char *path, const char **file,
                   struct look_result *r);

/* Whether a program gives rights that its caller has not (set-uid, set-gid, capabilities): ld.so
 * takes our libraries from it, and with them from what it starts. 0 if there is no such file. */
int program_gives_rights(const char *path);

/* Splits a script's first line, "#! interpreter argument", in place; *argument is NULL without one.
 * `head`: the first bytes of a file, at most BINARY_HEAD - 1, and a NUL. 0 if it is no script, or
 * not one that the kernel would certainly take so. */
int program_of_script(char *head, const char **interpreter, const char **argument);

/* Copies `envp` with `e` applied into `out`, which has room for `n` pointers (count of envp +
 * e->n_add + 1). */
void program_env_merge(char *const envp[], const struct program_env *e, char **out, size_t n);

#endif
