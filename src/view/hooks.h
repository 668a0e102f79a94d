/* What the hooked functions share: their declarations, the next definitions, the view.
 *
 * The rules of this hostile ground: a hook is called before any constructor has run, from signal
 * handlers, between vfork and exec, from threads with small stacks, and with every argument a
 * program can think of. It takes no lock, allocates nothing (except where the function it stands
 * for does), and leaves errno as the function itself would.
 */
#ifndef BRG_VIEW_HOOKS_H
#define BRG_VIEW_HOOKS_H

#include "view/look.h"
#include "view/record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <fts.h>
#include <glob.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <unistd.h>
#include <utime.h>

typedef int dirent_filter(const struct dirent *);
typedef int dirent_order(const struct dirent **, const struct dirent **);
typedef int nftw_visit(const char *, const struct stat *, int, struct FTW *);
typedef int ftw_visit(const char *, const struct stat *, int);
typedef int fts_order(const FTSENT **, const FTSENT **);
typedef int glob_error(const char *, int);
typedef void *thread_start(void *);

#define BRG_HOOKS "view/hooks.def"
#include "base/real_calls.h"

/* The process's view, or NULL when there is nothing to do but the real call. */
extern struct view *preload_view;
extern int preload_started;
struct view *preload_start(void);
static inline const struct view *hook_view(void)
{
    if (__builtin_expect(!__atomic_load_n(&preload_started, __ATOMIC_ACQUIRE), 0))
        return preload_start();
    return preload_view;
}
/* Keeps the error that waits for the program's dlerror(). */
void preload_keep_error(void);

/* Looks for what hooks_thread.c calls, as long as it has not been found; whether it has been. */
int preload_find_threads(void);

static inline int serves(const struct view *v)
{
    return v && v->mode == VIEW_SERVE;
}

/* In a template: what keeps account of the variables that are read, `value` NULL if there is none.
 * Set before other threads are there; NULL otherwise. As careful as a hook. */
typedef void env_read(const char *name, const char *value);
extern env_read *preload_env_read;

/* The errno of a call that returns -1 on failure, 0 if it worked. */
static inline int error_of(long result)
{
    return result < 0 ? errno : 0;
}

/* A call that changed (or tried to change) `path`: counted, recorded, and marked if it worked. */
void hook_wrote(const struct view *v, const char *what, int dirfd, const char *path, int follow,
                int err);

/* The same for a descriptor that has been opened for writing; `fd` -1 if that failed. */
void hook_wrote_fd(const struct view *v, int dirfd, const char *path, int follow, int fd);

#endif
