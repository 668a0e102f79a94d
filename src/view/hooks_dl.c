/* dlerror: what ld.so says of a library that is known to be missing.
 *
 * The auditor sends ld.so to a place in the staged tree where nothing is, so that the failure costs
 * the shared file system nothing; here the message gets back the path that the program asked for.
 */
#include "view/hooks.h"
#include "base/next_definition.h"
#include "base/sys.h"
#include "base/text.h"

#define BRG_SECTION_DL
#include "view/hooks.def"

/* An error that waited for the program when the real calls were looked for, which forgets it: a
 * constructor's, where those of other libraries come before ours (libpthread's, before glibc 2.34,
 * takes the place of the first). */
static char waiting[PATH_MAX + 256];
static long whose; /* the thread's, 0: nothing waits */

static long this_thread(void)
{
    return sys_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

void preload_keep_error(void)
{
    char *(*dl_error)(void) = (char *(*)(void))next_definition("dlerror");
    const char *message = dl_error ? dl_error() : NULL;
    if (!message)
        return;
    struct text t = text_in(waiting, sizeof waiting);
    text_add(&t, message);
    whose = t.full ? 0 : this_thread();
}

/* ld.so wrote the message for this call and gave it away: it may be shortened in place. */
char *hook_dlerror(void)
{
    const struct view *v = hook_view();
    char *message = REAL(dlerror)();
    if (whose && preload_started && whose == this_thread()) { /* not for our own questions */
        message = message ? message : waiting;                /* one that came later counts */
        whose = 0;
    }
    if (!serves(v) || !message)
        return message;
    for (char *at = message; *at; at++)
        if (*at == v->root[0] && text_starts(at, v->root))
            memmove(at, at + v->root_len, strlen(at + v->root_len) + 1);
    return message;
}
