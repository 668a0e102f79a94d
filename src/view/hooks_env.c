/* getenv: which variables are read, by whom.
 *
 * In a trial that watches what modules do, each read becomes a record; in a template of a node's
 * ranks, preload_env_read is set to what keeps account of them. Otherwise this is one more call.
 */
#include "view/hooks.h"
#include "base/text.h"

#include <stdlib.h>
#include <sys/auxv.h>

env_read *preload_env_read;

/* A read of a variable that has `value` (NULL: none) in a trial. */
static void record_read(const struct view *v, const char *name, const char *value)
{
    char changed[256];
    const char *started = view_env(v, name);
    if (text_alike(value, started)) {
        record_event(v, "getenv", name);
        return;
    }
    struct text t = text_in(changed, sizeof changed);
    text_add(&t, name);
    text_add(&t, "!");
    record_event(v, "getenv", t.full ? "!" : changed);
}

/* Before the library has started: an allocator may ask while the real calls are looked up. */
static char *find(const char *name)
{
    size_t n = strlen(name);
    for (char **at = environ; at && *at; at++)
        if (text_starts(*at, name) && (*at)[n] == '=')
            return *at + n + 1;
    return NULL;
}

char *hook_getenv(const char *name)
{
    const struct view *v = hook_view();
    char *value = real.getenv ? real.getenv(name) : find(name);
    if (__builtin_expect(preload_env_read != NULL, 0))
        preload_env_read(name, value);
    else if (__builtin_expect(v && v->mode == VIEW_RECORD, 0))
        record_read(v, name, value);
    return value;
}

char *hook_secure_getenv(const char *name)
{
    return getauxval(AT_SECURE) ? NULL : hook_getenv(name);
}

#define BRG_SECTION_ENV
#define BRG_ALIAS BRG_DEFINE_ALIAS
#include "view/hooks.def"
