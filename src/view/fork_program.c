/* Stopping a program that is no Python, and forking its ranks. See fork_program.h.
 *
 * Before constructors: this library's own constructor is the first that runs, because the library
 * is linked with `-z initfirst`; nothing of the program has been executed but what picks functions
 * during relocation. That is so unless another library asks for the same (libpthread before glibc
 * 2.34 does: the last one that is loaded is the first to start).
 *
 * Before main: la_preinit() of the auditor. Constructors have run, and what they have left is
 * looked at: what no fork takes over, or what may be one rank's own, makes the program execute
 * itself once more and stop before constructors. None of this shows in a rank: it returns from here
 * as from any constructor, with its own environment where the kernel put that of the process.
 */
#include "view/fork_program.h"
#include "base/sys.h"
#include "base/text.h"
#include "fork/begin.h"
#include "fork/own.h"
#include "view/hooks_fork.h"
#include "view/handoff.h"

#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <unistd.h>

/* As fork(), of this libc: who else defines fork() may not have started yet. */
extern pid_t __fork(void);

static struct {
    char **arguments, **variables; /* where the kernel put them */
    size_t n_variables;
    uint64_t digest; /* of where the variables were */
    int before_constructors;
} start;

int fork_program_stops(const char *kind)
{
    return brigade_handoff && (text_alike(kind, "main") || text_alike(kind, "preinit"));
}

static uint64_t digest_of(char *const *variables)
{
    size_t n = 0;
    while (variables[n])
        n++;
    return brg_hash((const char *)variables, n * sizeof *variables, BRG_HASH_SEED);
}

/* ---- words ---- */

/* A piece of a JSON string. */
static void add_quoted(struct text *t, const char *words)
{
    for (; *words; words++) {
        int plain = *words >= ' ' && *words != '"' && *words != '\\' && (unsigned char)*words < 128;
        text_bytes(t, plain ? words : "?", 1);
    }
}

static void tell(const struct view *v, const char *kind, const char *doubt)
{
    char words[sizeof v->state->fork.words];
    struct text t = text_in(words, sizeof words);
    text_add(&t, "{\"kind\":\"");
    text_add(&t, kind);
    text_add(&t, "\",\"doubt\":\"");
    add_quoted(&t, doubt);
    text_add(&t, "\"}");
    if (!t.full)
        fork_words(v, words);
}

/* ---- in doubt ---- */

static int asks_to_be_first(struct dl_phdr_info *object, size_t size, void *found)
{
    (void)size;
    if (text_starts(text_base(object->dlpi_name), BRG_PRELOAD_MARK))
        return 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type != PT_DYNAMIC)
            continue;
        for (const ElfW(Dyn) *d = (void *)(object->dlpi_addr + segment->p_vaddr);
             d->d_tag != DT_NULL; d++)
            *(int *)found |= d->d_tag == DT_FLAGS_1 && (d->d_un.d_val & DF_1_INITFIRST);
    }
    return 0;
}

/* Why the process as it is now is no template, in words; NULL: nothing speaks against it. */
static const char *doubt(const struct view *v)
{
    static char words[FORK_TEXT];
    int found = 0;
    if (template_left_open(words, sizeof words))
        return words;
    if (start.before_constructors && dl_iterate_phdr(asks_to_be_first, &found) == 0 && found)
        return "another library is started before all others";
    if (!start.before_constructors && environ &&
        (environ != start.variables || digest_of(environ) != start.digest))
        return "the environment was changed before main";
    const char *changed = start.before_constructors ? NULL : template_changed();
    if (changed)
        return changed;
    if (!own_is_alone())
        return "a thread was started before main";
    const char *own = own_besides(view_env(v, "BRIGADE_STATE"));
    if (!own)
        return NULL;
    struct text t = text_in(words, sizeof words);
    text_add(&t, own);
    text_add(&t, " before main");
    return words;
}

/* Executes the program once more, to stop before constructors. Returns if that cannot be. */
static void again(const struct view *v)
{
    static const char kind[] = BRG_FORK_VARIABLE "=preinit";
    static char socket[64] = BRG_FORK_SOCKET_VARIABLE "=", file[PATH_MAX];
    size_t head = sizeof BRG_FORK_SOCKET_VARIABLE, n = 0;
    long length = sys_readlink("/proc/self/exe", file, sizeof file - 1);
    const char **list = sys_map((start.n_variables + 3) * sizeof *list, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1);
    size_t value = template_again(socket + head, sizeof socket - head);
    if (length <= 0 || !list || !value)
        return;
    for (const char *p = v->env; p < v->env + v->env_bytes; p += strlen(p) + 1)
        if (!text_starts(p, BRG_FORK_VARIABLE "=") &&
            !text_starts(p, BRG_FORK_SOCKET_VARIABLE "=") && n < start.n_variables)
            list[n++] = p;
    list[n++] = kind;
    list[n++] = socket;
    sys_call(SYS_execve, (long)file, (long)start.arguments, (long)list, 0, 0, 0);
}

/* ---- serving ---- */

/* The rank's environment, where that of a process is: constructors and main are told that place. */
static void place_environment(void)
{
    size_t n = 0;
    for (; environ[n]; n++)
        start.variables[n] = environ[n];
    for (; n < start.n_variables; n++)
        start.variables[n] = NULL;
    environ = start.variables;
}

/* Returns in each rank. */
static void serve(struct view *v)
{
    struct template_request request;
    while (fork_next(v, &request)) {
        if (request.head->n_variables > start.n_variables) {
            template_refuse("it has more variables than the rank that came first");
            continue;
        }
        pid_t child = start.before_constructors ? __fork() : fork();
        if (child == 0) {
            template_child();
            place_environment();
            fork_become(v, &request);
            fork_over(v);
            return;
        }
        template_forked(child < 0 ? -errno : child);
    }
    sys_exit(0);
}

static void before_main(struct view *v)
{
    if (!v->fork)
        return;
    const char *why = doubt(v);
    v->before_main = NULL;
    tell(v, why ? "preinit" : "main", why ? why : "");
    if (why) {
        again(v);
        template_refuse_all(why);
    }
    serve(v);
}

void fork_program_begin(struct view *v, char **argv, char **envp)
{
    start.arguments = argv;
    start.variables = envp;
    while (envp[start.n_variables])
        start.n_variables++;
    start.digest = digest_of(envp);
    if (text_alike(view_env(v, BRG_FORK_VARIABLE), "main")) {
        v->before_main = before_main;
        return;
    }
    start.before_constructors = 1;
    const char *why = doubt(v);
    if (why)
        template_refuse_all(why);
    if (!v->state->fork.n_words)
        tell(v, "preinit", "");
    serve(v);
}
