/* The environment of a program that is about to be executed. See program.h. */
#include "view/behind.h"
#include "view/handoff.h"
#include "view/program.h"
#include "view/record.h"
#include "fork/begin.h"
#include "base/sys.h"
#include "base/text.h"

#include <unistd.h>

/* Variables that a child must have; of lists only our own element. */
static const char *const kept[] = {"BRIGADE_STAGE",       "BRIGADE_STATE", "BRIGADE_SLOT",
                                   BRG_ROOT_VARIABLE,     "BRIGADE_VIEW",  "BRIGADE_STRICT",
                                   "BRIGADE_RECORD",      BRG_RECORD_FORK, BRG_FORK_BEHIND_VARIABLE,
                                   BRG_FORK_PINS_VARIABLE};
static const char *const of_this_node[] = {"BRIGADE_STAGE", "BRIGADE_STATE", "BRIGADE_SLOT",
                                           "BRIGADE_RECORD", BRG_ROOT_VARIABLE};
static const struct {
    const char *name, *saved, *mark;
} lists[] = {{"LD_AUDIT", "BRIGADE_SAVED_LD_AUDIT", BRG_AUDIT_NAME},
             {"LD_PRELOAD", "BRIGADE_SAVED_LD_PRELOAD", BRG_PRELOAD_MARK},
             {"GLIBC_TUNABLES", "BRIGADE_SAVED_GLIBC_TUNABLES", BRG_STATIC_TLS}};

static const char *find_env(char *const envp[], const char *name)
{
    size_t n = strlen(name);
    for (; envp && *envp; envp++)
        if (text_starts(*envp, name) && (*envp)[n] == '=')
            return *envp + n + 1;
    return NULL;
}

/* The length of the first element of a list that colons (or, in LD_PRELOAD, spaces) separate. */
static size_t first_element(const char *list)
{
    size_t n = 0;
    while (list[n] && list[n] != ':' && list[n] != ' ')
        n++;
    return n;
}

/* The first element of a list in which `part` occurs, or NULL. */
static const char *element_with(const char *list, const char *part)
{
    while (*list) {
        size_t n = first_element(list);
        for (size_t i = 0; i < n; i++)
            if (text_starts(list + i, part))
                return list;
        list += n + (list[n] != '\0');
    }
    return NULL;
}

/* The length of all elements with `part` that stand at the start of a list: a library of ours, and
 * in a trial the one that watches. */
static size_t elements_with(const char *list, const char *part)
{
    size_t n = first_element(list);
    while (list[n] && element_with(list + n + 1, part) == list + n + 1)
        n += 1 + first_element(list + n + 1);
    return n;
}

static void add_entry(struct program_env *e, struct text *arena, const char *name, const char *ours,
                      size_t n, const char *theirs)
{
    const char *entry = arena->at + arena->len;
    text_add(arena, name);
    text_add(arena, "=");
    text_bytes(arena, ours, n);
    if (theirs && *theirs) {
        text_add(arena, n ? ":" : "");
        text_add(arena, theirs);
    }
    text_field(arena, "");
    if (!arena->full)
        e->add[e->n_add++] = entry;
}

/* Puts our element in front of what the caller has in a list variable, and saves the caller's. */
static void prepend(struct program_env *e, struct text *arena, const char *name, const char *saved,
                    const char *ours, size_t n, const char *theirs)
{
    add_entry(e, arena, name, ours, n, theirs);
    if (theirs)
        add_entry(e, arena, saved, "", 0, theirs);
    else
        e->drop[e->n_drop++] = saved;
}

/* The folder of the Python view: the staged one, or what the wrapper put first at the trial. Its
 * length, 0 if there is none. */
static size_t python_folder(const struct view *v, char *buf, size_t size)
{
    const char *list = view_env(v, "PYTHONPATH");
    struct text t = text_in(buf, size);
    if (!v->python)
        return 0;
    if (v->mode == VIEW_SERVE) {
        text_bytes(&t, v->root, v->root_len);
        text_add(&t, "/.brigade/python");
    } else if (list) {
        text_bytes(&t, list, first_element(list));
    }
    return t.full ? 0 : t.len;
}

static int has_python_view(const char *folder)
{
    char path[PATH_MAX];
    struct text t = text_in(path, sizeof path);
    text_add(&t, folder);
    text_add(&t, "/_brigade_view.py");
    return !t.full && sys_access(path, R_OK) == 0;
}

static int is_first(const char *list, const char *element, size_t n)
{
    return first_element(list) == n && memcmp(list, element, n) == 0;
}

static void keep_python(const struct view *v, char *const envp[], struct program_env *e,
                        struct text *arena)
{
    char ours[PATH_MAX];
    const char *theirs = find_env(envp, "PYTHONPATH");
    size_t n = python_folder(v, ours, sizeof ours);
    if (n && has_python_view(ours) && !(theirs && is_first(theirs, ours, n)))
        prepend(e, arena, "PYTHONPATH", "BRIGADE_SAVED_PYTHONPATH", ours, n, theirs);
}

/* Puts back what a list variable is without our elements, those in which `mark` occurs. */
static void take_out(struct program_env *e, struct text *arena, const char *name, const char *list,
                     const char *mark)
{
    const char *entry = arena->at + arena->len;
    int n_left = 0;
    if (!list || !element_with(list, mark))
        return;
    text_add(arena, name);
    text_add(arena, "=");
    while (*list) {
        size_t n = first_element(list);
        if (element_with(list, mark) != list) {
            text_add(arena, n_left++ ? ":" : "");
            text_bytes(arena, list, n);
        }
        list += n + (list[n] != '\0');
    }
    text_field(arena, "");
    if (n_left && !arena->full)
        e->add[e->n_add++] = entry;
    else
        e->drop[e->n_drop++] = name;
}

/* Whether whoever runs the program can read our libraries: not if it has become another user. */
static int readable(const struct view *v)
{
    char path[PATH_MAX];
    const char *list = view_env(v, "LD_PRELOAD");
    const char *ours = list ? element_with(list, BRG_PRELOAD_NAME) : NULL;
    if (!ours)
        return 1;
    struct text t = text_in(path, sizeof path);
    text_bytes(&t, ours, first_element(ours));
    return t.full || sys_access(path, R_OK) == 0;
}

static void take_out_python(const struct view *v, char *const envp[], struct program_env *e,
                            struct text *arena)
{
    char ours[PATH_MAX];
    const char *list = find_env(envp, "PYTHONPATH");
    size_t n = python_folder(v, ours, sizeof ours);
    if (n && list && is_first(list, ours, n))
        take_out(e, arena, "PYTHONPATH", list, ours);
}

int program_only_lists(char *const envp[])
{
    return find_env(envp, "LD_TRACE_LOADED_OBJECTS") != NULL;
}

int program_stands_alone(const struct view *v, char *const envp[])
{
    return program_only_lists(envp) || find_env(envp, "VALGRIND_LAUNCHER") || !readable(v);
}

void program_env_alone(const struct view *v, char *const envp[], int everything,
                       struct program_env *e)
{
    struct text arena = text_in(e->arena, sizeof e->arena);
    e->n_add = e->n_drop = 0;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        take_out(e, &arena, lists[i].name, find_env(envp, lists[i].name), lists[i].mark);
    if (everything || !readable(v))
        take_out_python(v, envp, e, &arena);
    for (size_t i = 0; everything && i < sizeof of_this_node / sizeof *of_this_node; i++)
        e->drop[e->n_drop++] = of_this_node[i];
}

/* Whether this process was started with the library that watches. */
static int is_watched(const struct view *v)
{
    const char *list = view_env(v, "LD_PRELOAD");
    return list && element_with(list, BRG_WATCH_NAME);
}

void program_env(const struct view *v, char *const envp[], struct program_env *e)
{
    struct text arena = text_in(e->arena, sizeof e->arena);
    e->n_add = e->n_drop = 0;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        const char *entry = view_env_entry(v, kept[i]);
        if (text_same(kept[i], BRG_RECORD_FORK) && !is_watched(v))
            continue;
        if (entry && !find_env(envp, kept[i]))
            e->add[e->n_add++] = entry;
    }
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const char *now = find_env(envp, lists[i].name), *start = view_env(v, lists[i].name);
        const char *ours = start ? element_with(start, lists[i].mark) : NULL;
        if (ours && !(now && element_with(now, lists[i].mark)))
            prepend(e, &arena, lists[i].name, lists[i].saved, ours,
                    elements_with(ours, lists[i].mark), now);
    }
    keep_python(v, envp, e, &arena);
}

/* Whether two entries (or an entry and a bare name) are of one variable. */
static int same_name(const char *entry, const char *other)
{
    while (*entry && *entry != '=' && *entry == *other)
        entry++, other++;
    return *entry == '=' && (*other == '=' || *other == '\0');
}

static int replaced(const char *entry, const struct program_env *e)
{
    for (int i = 0; i < e->n_add; i++)
        if (same_name(entry, e->add[i]))
            return 1;
    for (int i = 0; i < e->n_drop; i++)
        if (same_name(entry, e->drop[i]))
            return 1;
    return 0;
}

void program_env_merge(char *const envp[], const struct program_env *e, char **out, size_t n)
{
    size_t at = 0;
    for (int i = 0; i < e->n_add && at + 1 < n; i++)
        out[at++] = (char *)e->add[i];
    for (; envp && *envp && at + 1 < n; envp++)
        if (!replaced(*envp, e))
            out[at++] = *envp;
    out[at] = NULL;
}
