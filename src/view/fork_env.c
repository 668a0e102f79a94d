/* Variables of a template and of its ranks. See fork_env.h.
 *
 * What was read may be kept: as a number of threads, as a path. Python's own reads of os.environ
 * are kept account of by _brigade_fork.py.
 */
#include "view/fork_env.h"
#include "base/text.h"
#include "view/hooks.h"

enum {
    NOTED_ROOM = 16 << 10
};

static struct {
    int busy; /* taken by a thread that notes */
    int lost; /* there was no room */
    size_t used;
    char names[NOTED_ROOM]; /* strings, one after the other */
} noted;

/* Read before anything could be noted, or by libc itself. */
static const char *const early[] = {"LD_", "GLIBC_TUNABLES", "MALLOC_", "PYTHON", "LC_", "LANG",
                                    "TZ",  "NLSPATH",        "GCONV_",  "LOCPATH"};

/* Brigade's own differ from rank to rank, and the rank's are taken over. */
static int is_own(const char *name)
{
    return text_starts(name, "BRIGADE_");
}

static void note(const char *name, const char *value)
{
    (void)value;
    if (!name || is_own(name))
        return;
    while (__atomic_exchange_n(&noted.busy, 1, __ATOMIC_ACQUIRE))
        ;
    size_t n = strlen(name) + 1, at = 0;
    while (at < noted.used && !text_same(noted.names + at, name))
        at += strlen(noted.names + at) + 1;
    if (at == noted.used && n <= NOTED_ROOM - noted.used) {
        memcpy(noted.names + noted.used, name, n);
        noted.used += n;
    } else if (at == noted.used) {
        noted.lost = 1;
    }
    __atomic_store_n(&noted.busy, 0, __ATOMIC_RELEASE);
}

void fork_env_begin(void)
{
    preload_env_read = note;
}

void fork_env_end(void)
{
    preload_env_read = NULL;
}

/* The value of the variable whose name is the `n` bytes at `name`; NULL if there is none. */
static const char *value_in(const char *env, size_t bytes, const char *name, size_t n)
{
    const char *entry = view_entry_in(env, bytes, name, n);
    return entry ? entry + n + 1 : NULL;
}

static const char *words_for(const char *name, size_t n)
{
    static char words[FORK_TEXT];
    struct text t = text_in(words, sizeof words);
    text_add(&t, "another value of ");
    text_bytes(&t, name, n < 80 ? n : 80);
    return words;
}

static int is_early(const char *entry)
{
    for (size_t i = 0; i < sizeof early / sizeof *early; i++)
        if (text_starts(entry, early[i]))
            return 1;
    return 0;
}

/* The first early variable of `a` that `b` has not, or has with another value. */
static const char *early_differs(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    for (const char *p = a; p && p < a + a_bytes; p += strlen(p) + 1) {
        size_t n = strcspn(p, "=");
        if (is_early(p) && p[n] == '=' && !text_alike(p + n + 1, value_in(b, b_bytes, p, n)))
            return words_for(p, n);
    }
    return NULL;
}

const char *fork_env_differs(const struct view *v, const struct template_request *rank)
{
    const char *theirs = rank->environment;
    size_t bytes = rank->head->environment_bytes;
    const char *why = early_differs(v->env, v->env_bytes, theirs, bytes);
    why = why ? why : early_differs(theirs, bytes, v->env, v->env_bytes);
    for (size_t at = 0; !why && at < noted.used; at += strlen(noted.names + at) + 1) {
        const char *name = noted.names + at;
        size_t n = strlen(name);
        if (!text_alike(view_env(v, name), value_in(theirs, bytes, name, n)))
            why = words_for(name, n);
    }
    return noted.lost ? "more variables were read than are remembered" : why;
}
