/* The preloaded library: its start, and what all hooks share. See hooks.h. */
#include "view/hooks.h"
#include "fork/begin.h"
#include "view/fork_env.h"
#include "view/handoff.h"
#include "view/hooks_fork.h"
#include "view/startup.h"
#include "base/real_find.h"
#include "base/sys.h"
#include "base/text.h"

#include <stdlib.h>
#include <sys/auxv.h>

__attribute__((visibility("default"))) struct view *brigade_handoff;
__attribute__((visibility("default"))) void brigade_ready(void);

struct view *preload_view;
int preload_started;

static struct view own_view;
static int starting;

/* Runs once, on the first call of any hook. A call that comes meanwhile (from inside, or from
 * another thread) is passed on. */
struct view *preload_start(void)
{
    int expected = 0;
    if (!__atomic_compare_exchange_n(&starting, &expected, 1, 0, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        return NULL;
    preload_keep_error();
    real_find_all();
    preload_find_threads();
    struct view *v = brigade_handoff;
    if (!v || v->bytes != sizeof *v) {
        v = &own_view;
        view_start(v);
    }
    preload_view = v->mode == VIEW_OFF ? NULL : v;
    if (v->mode == VIEW_SERVE && view_env(v, BRG_FORK_SOCKET_VARIABLE))
        fork_env_begin(); /* another library's constructor may have come first */
    __atomic_store_n(&preload_started, 1, __ATOMIC_RELEASE);
    return preload_view;
}

void brigade_ready(void)
{
    const struct view *v = hook_view();
    if (serves(v))
        __atomic_store_n(&v->slot->ready_ns, sys_now_ns(CLOCK_REALTIME), __ATOMIC_RELAXED);
}

static void end_of_process(int status, void *unused)
{
    (void)unused;
    if (preload_view)
        record_end(preload_view, status);
}

static void start_of_child(void)
{
    startup_forked(preload_view);
}

/* The kernel's note of what was executed names the staged copy; the program sees the original. */
static void restore_execfn(const struct view *v)
{
    char *name = (char *)getauxval(AT_EXECFN);
    if (name && name[0] == '/') {
        const char *original = view_original(v, name);
        memmove(name, original, strlen(original) + 1);
    }
}

__attribute__((constructor)) static void start_of_process(int argc, char **argv, char **envp)
{
    const struct view *v = hook_view();
    (void)argc;
    if (!v)
        return;
    if (v->mode == VIEW_RECORD)
        on_exit(end_of_process, NULL);
    else {
        restore_execfn(v);
        preload_view->preloaded = 1;
        pthread_atfork(NULL, NULL, start_of_child);
        fork_begin(preload_view, argv, envp);
    }
}

void hook__exit(int status)
{
    const struct view *v = hook_view();
    if (v)
        record_end(v, status);
    REAL(_exit)(status);
    __builtin_unreachable();
}

#define BRG_SECTION_END
#define BRG_ALIAS BRG_DEFINE_ALIAS
#include "view/hooks.def"

void hook_wrote(const struct view *v, const char *what, int dirfd, const char *path, int follow,
                int err)
{
    if (!v || !path)
        return;
    if (v->mode == VIEW_RECORD) {
        record_lookup(v, "write", err, dirfd, path, what);
        return;
    }
    if (look_covers(v, dirfd, path, follow))
        look_miss(v, BRG_MISS_WRITE, what, dirfd, path);
    if (!err)
        look_changed(v, dirfd, path, follow);
}

void hook_wrote_fd(const struct view *v, int dirfd, const char *path, int follow, int fd)
{
    if (!v || !path)
        return;
    if (v->mode == VIEW_RECORD) {
        record_lookup(v, "write", error_of(fd), dirfd, path, "open");
        return;
    }
    if (fd >= 0 ? look_changed_fd(v, fd) : look_covers(v, dirfd, path, follow))
        look_miss(v, BRG_MISS_WRITE, "open", dirfd, path);
}
