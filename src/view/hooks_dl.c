/* dlerror: what ld.so says of a library that is known to be missing.
 *
 * The auditor sends ld.so to a place in the staged tree where nothing is, so that the failure costs
 * the shared file system nothing; here the message gets back the path that the program asked for.
 */
#include "view/hooks.h"
#include "base/text.h"

#define BRG_SECTION_DL
#include "view/hooks.def"

/* ld.so wrote the message for this call and gave it away: it may be shortened in place. */
char *hook_dlerror(void)
{
    const struct view *v = hook_view();
    char *message = REAL(dlerror)();
    if (!serves(v) || !message)
        return message;
    for (char *at = message; *at; at++)
        if (*at == v->root[0] && text_starts(at, v->root))
            memmove(at, at + v->root_len, strlen(at + v->root_len) + 1);
    return message;
}
