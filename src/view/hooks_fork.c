/* How a program that is a template reaches the template: fork_program.c before main, and Python as
 * the path of a readlink, which never gets to the kernel. See docs/design/0023-fork.md.
 *
 *   /.brigade/fork/twins          before the first wait: how many twins to fork (fork/twins.h)
 *   /.brigade/fork/twin-forked    in the template, of each
 *   /.brigade/fork/twin           in the twin
 *   /.brigade/fork/wait           "FILE OFFSET BYTES" of a rank's environment; "": none will come
 *   /.brigade/fork/own            what no child of fork takes over, but for threads; "": nothing
 *   /.brigade/fork/variables      how many variables C has, which a module in C may change
 *   /.brigade/fork/has/NAME=VALUE "1" if that is one of them
 *   /.brigade/fork/again          the value of BRIGADE_FORK_SOCKET for an exec of itself; "": none
 *   /.brigade/fork/refuse/WHY     not this one
 *   /.brigade/fork/refuse-all/WHY not this one, nor any
 *   /.brigade/fork/forked/PID     in the template; PID -1: it could not
 *   /.brigade/fork/child          in the child: now it is the rank, with signals still held back
 *   /.brigade/fork/begin          in the child: signals may come
 *   /.brigade/fork/report/TEXT    a line for the job's report
 */
#include "view/hooks_fork.h"
#include "base/sys.h"
#include "base/text.h"
#include "fork/begin.h"
#include "fork/own.h"
#include "fork/template.h"
#include "view/fork_env.h"
#include "view/fork_program.h"
#include "view/startup.h"

#include <stdlib.h>
#include <unistd.h>

static const char channel[] = "/.brigade/fork/";
static uint64_t begun_ns; /* when this process began to be a template */

/* What follows `word` in a message, or NULL. */
static const char *after(const char *path, const char *word)
{
    return text_starts(path, word) ? path + strlen(word) : NULL;
}

void fork_words(const struct view *v, const char *text)
{
    struct brg_fork *f = &v->state->fork;
    size_t n = strlen(text);
    if (n >= sizeof f->words)
        return;
    memcpy(f->words, text, n + 1);
    f->n_words = (uint32_t)n;
}

/* Its slot, its counters, its environment. */
void fork_become(struct view *v, const struct template_request *r)
{
    v->env = r->environment;
    v->env_bytes = r->head->environment_bytes;
    const char *strict = view_env(v, "BRIGADE_STRICT");
    uint32_t slot = (uint32_t)text_to_number(view_env(v, "BRIGADE_SLOT"), 0);
    v->strict = strict && text_same(strict, "1");
    v->slot = brg_state_slot(v->state, slot);
    startup_begin(v);
    v->slot->forked = BRG_FORK_DONE;
    __atomic_fetch_add(&v->slot->processes, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&v->state->fork.forked, 1, __ATOMIC_RELAXED);
}

void fork_over(struct view *v)
{
    template_begin_rank();
    fork_env_end();
    v->fork = 0;
}

int fork_next(struct view *v, struct template_request *request)
{
    struct brg_fork *f = &v->state->fork;
    if (!f->warm_ns)
        f->warm_ns = sys_now_ns(CLOCK_MONOTONIC) - begun_ns;
    for (;;) {
        if (!template_wait(request))
            return 0;
        const char *why = fork_env_differs(v, request);
        if (!why)
            return 1;
        template_refuse(why);
    }
}

static size_t wait_for_request(struct view *v, struct template_request *request, char *buf,
                               size_t size)
{
    struct text t = text_in(buf, size);
    if (!fork_next(v, request))
        return 0;
    text_number(&t, (uint64_t)request->file, 10);
    text_add(&t, " ");
    text_number(&t, request->head->environment_off, 10);
    text_add(&t, " ");
    text_number(&t, request->head->environment_bytes, 10);
    return t.len;
}

static size_t number_of_twins(char *buf, size_t size)
{
    struct text t = text_in(buf, size);
    text_number(&t, template_twins(), 10);
    return t.len;
}

static size_t what_is_own(const struct view *v, char *buf, size_t size)
{
    struct text t = text_in(buf, size);
    const char *own = own_besides(view_env(v, "BRIGADE_STATE"));
    text_add(&t, own ? own : "");
    return t.len;
}

/* Of all, or of those that are that entry. By one of its own, Intel's OpenMP tells a second copy of
 * itself in a process that it is there: no rank misses it. */
static size_t number_of_variables(const char *entry, char *buf, size_t size)
{
    struct text t = text_in(buf, size);
    uint64_t n = 0;
    for (char *const *p = environ; p && *p; p++)
        n += entry ? text_same(*p, entry) : !text_starts(*p, "__KMP_REGISTERED_LIB_");
    text_number(&t, n, 10);
    return t.len;
}

int fork_message_of(struct view *v, const char *path, char *buf, size_t size, size_t *length)
{
    static struct template_request request;
    const char *word = after(path, channel), *text;
    *length = 0;
    if (!word || !v->fork)
        return 0;
    if (text_same(word, "wait"))
        *length = wait_for_request(v, &request, buf, size);
    else if (text_same(word, "twins"))
        *length = number_of_twins(buf, size);
    else if (text_same(word, "twin-forked"))
        template_twin_forked();
    else if (text_same(word, "twin"))
        template_become_twin();
    else if (text_same(word, "own"))
        *length = what_is_own(v, buf, size);
    else if (text_same(word, "variables"))
        *length = number_of_variables(NULL, buf, size);
    else if ((text = after(word, "has/")))
        *length = number_of_variables(text, buf, size);
    else if (text_same(word, "again"))
        *length = template_again(buf, size);
    else if ((text = after(word, "refuse/")))
        template_refuse(text);
    else if ((text = after(word, "refuse-all/"))) {
        template_refuse_all(text);
        template_refuse(text);
    } else if ((text = after(word, "forked/")))
        template_forked((int)strtol(text, NULL, 10));
    else if (text_same(word, "child")) {
        template_child();
        fork_become(v, &request);
    } else if (text_same(word, "begin")) {
        fork_over(v);
    } else if ((text = after(word, "report/")))
        fork_words(v, text);
    else
        return 0;
    return 1;
}

enum option {
    OPTION_PLAIN,
    OPTION_OFF,     /* it switches off what makes Python a template */
    OPTION_LAST,    /* the rest is the program's */
    OPTION_AND_NEXT /* the next word belongs to it */
};

static enum option python_option(const char *word)
{
    for (word++; *word; word++)
        switch (*word) {
        case 'S':
        case 'E':
        case 'I': return OPTION_OFF;
        case 'c':
        case 'm': return OPTION_LAST;
        case 'W':
        case 'X': return word[1] ? OPTION_PLAIN : OPTION_AND_NEXT;
        default: break;
        }
    return OPTION_PLAIN;
}

/* Whether this is a Python that will read `sitecustomize`. Anything else that was started as a
 * template would run the program, once more than there are ranks. */
static int will_serve(const struct view *v)
{
    char words[4096];
    if (!text_starts(text_base(v->exe), "python"))
        return 0;
    long n = sys_read_text("/proc/self/cmdline", words, sizeof words);
    const char *end = words + (n > 0 ? n : 0), *word = words + strlen(words) + 1;
    for (; word < end && word[0] == '-' && word[1]; word += strlen(word) + 1) {
        enum option option = python_option(word);
        if (option == OPTION_OFF || option == OPTION_LAST)
            return option == OPTION_LAST;
        if (option == OPTION_AND_NEXT)
            word += strlen(word) + 1;
    }
    return 1;
}

/* Whether this process will stop before it does what a rank is to do. */
static int will_stop(const struct view *v)
{
    const char *kind = view_env(v, BRG_FORK_VARIABLE);
    return text_alike(kind, "python") ? will_serve(v) : fork_program_stops(kind);
}

void fork_begin(struct view *v, char **argv, char **envp)
{
    v->fork = template_begin(view_env(v, BRG_FORK_SOCKET_VARIABLE));
    if (!v->fork) {
        fork_env_end();
        return;
    }
    if (!will_stop(v))
        sys_exit(127);
    own_begin();
    fork_env_begin();
    begun_ns = sys_now_ns(CLOCK_MONOTONIC);
    template_tell_saved(&v->state->fork.saved_bytes);
    if (!text_alike(view_env(v, BRG_FORK_VARIABLE), "python"))
        fork_program_begin(v, argv, envp);
}
