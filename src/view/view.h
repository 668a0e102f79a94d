/* What a process knows about Brigade: off, serving from a staged folder, or recording a trial.
 *
 * One `struct view` a process. The auditor, which ld.so loads first, makes it from the environment
 * the process was started with and hands it to the preloaded library when that is loaded (both are
 * built together; `bytes` guards against a mixture). Without an auditor the preloaded library
 * makes its own. After view_start() nothing in it changes, except what says how
 * far the start-up is, and what lies in shared memory; it survives fork as it is.
 *
 * Freestanding: compiled into the auditor, the preloaded library and the wrapper.
 */
#ifndef BRG_VIEW_VIEW_H
#define BRG_VIEW_VIEW_H

#include "image/index.h"
#include "view/state.h"

#include <linux/limits.h> /* PATH_MAX: the one of a libc is not there for freestanding code */
#include <stddef.h>
#include <stdint.h>

enum view_mode {
    VIEW_OFF = 0,
    VIEW_SERVE,
    VIEW_RECORD
};

enum {
    VIEW_FIRSTS = 8
};

struct recorder;

struct view {
    size_t bytes; /* sizeof(struct view) */
    enum view_mode mode;
    int strict;
    int away;      /* it sees other files than brigade-rank did (root.h): nothing is answered */
    int python;    /* the Python view is on, too */
    int preloaded; /* the preloaded library is at work: dlerror shows original paths */
    int fork;      /* this process is a template, or a child of one that is yet to begin */
    void (*before_main)(struct view *v); /* the preloaded library's, for the auditor; or NULL */
    int startup_over;                    /* startup.h */
    int startup_pid;                     /* of the process whose memory this is */
    uint64_t last_software_ns, last_software_cpu_ns; /* this process's last look-up of software */
    uint64_t stage_dev;                              /* device of the staged files */

    const struct brg_index *index;
    struct brg_state *state;
    struct brg_slot *slot;
    struct recorder *recorder;

    /* First path components that can lead under a covered root; n_firsts -1: any may. */
    int n_firsts;
    struct brg_str firsts[VIEW_FIRSTS];

    const char *env; /* the environment at the start: strings, then an empty one */
    size_t env_bytes;
    uint64_t context; /* brg_search_context() of this process */
    size_t root_len;
    char root[PATH_MAX]; /* "<stage>/root" */
    char exe[PATH_MAX];  /* the executable's original path */
};

/* Fills `v` from the environment of the process; VIEW_OFF when Brigade is not asked for, or when
 * anything about the stage is wrong. */
void view_start(struct view *v);

/* Only the environment and the executable's path; a part of view_start(). */
void view_read_process(struct view *v);

/* Whether this process sees other files than what started its view did: it may have gone into a
 * container since. */
int view_is_away(const struct view *v);

/* Notes for the report that a program was started away, and left alone. */
void view_note_away(const struct view *v);

/* Opens a staged folder for this process. 0 or -errno; `v` is VIEW_OFF on failure. */
int view_open_stage(struct view *v, const char *stage, const char *state, uint32_t slot);

/* The value of a variable as the process was started, or NULL. */
const char *view_env(const struct view *v, const char *name);

/* The same with "NAME=" in front, as an entry of an environment. */
const char *view_env_entry(const struct view *v, const char *name);

/* The entry of the variable whose name is the `n` bytes at `name` among the strings at `env`. */
const char *view_entry_in(const char *env, size_t bytes, const char *name, size_t n);

/* If `path` lies in the staged tree, the part that is the original path; otherwise `path`. */
const char *view_original(const struct view *v, const char *path);

/* The original path of what a descriptor refers to, without asking any file system. Returns its
 * length, or -errno (-ENOENT: it has no path; -ENAMETOOLONG). *staged says whether the descriptor
 * is on a staged file. */
long view_fd_path(const struct view *v, int fd, char *buf, size_t size, int *staged);

/* The same of what `path` leads to now, by way of whatever the kernel shows in /proc and /dev. */
long view_end_path(const struct view *v, int dirfd, const char *path, char *buf, size_t size,
                   int *staged);

/* Makes `path` absolute as openat(dirfd, path) would see it. 0 or -errno. */
int view_absolute(const struct view *v, int dirfd, const char *path, char *buf, size_t size);

#endif
