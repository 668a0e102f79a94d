/* Going where other files are: another root, another mount namespace (root.h). */
#include "view/hooks.h"

/* From now on nothing is answered in this process; its children are started alone (program.c). */
static int went(int result)
{
    const struct view *v = hook_view();
    int err = errno;
    if (result == 0 && v && !v->away && view_is_away(v)) {
        record_add(v, "away", 0, "", v->exe, "");
        if (v->mode == VIEW_SERVE)
            look_unseen(v);
        preload_view->away = 1;
    }
    errno = err;
    return result;
}

int hook_chroot(const char *path)
{
    return went(REAL(chroot)(path));
}

int hook_unshare(int kinds)
{
    return went(REAL(unshare)(kinds));
}

int hook_setns(int fd, int kinds)
{
    return went(REAL(setns)(fd, kinds));
}

#define BRG_SECTION_ROOT
#define BRG_ALIAS BRG_DEFINE_ALIAS
#include "view/hooks.def"
