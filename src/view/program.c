/* Resolving programs and keeping the environment. See program.h. */
#include "view/program.h"
#include "view/handoff.h"
#include "view/look.h"
#include "view/record.h"
#include "view/sys.h"
#include "view/text.h"

#include <errno.h>
#include <unistd.h>

enum {
    HEAD = 256 /* the kernel's BINPRM_BUF_SIZE */,
    MAX_SCRIPTS = 2
};

/* The start of a file; its length, or -errno. */
static long read_head(const char *path, char *buf)
{
    int fd = sys_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    if (fd < 0)
        return fd;
    long n = sys_read(fd, buf, HEAD - 1);
    sys_close(fd);
    buf[n > 0 ? n : 0] = '\0';
    return n;
}

static int is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Splits "#! interpreter argument" in place. Returns 0 if the kernel would not take it so. */
static int parse_script(char *head, const char **interpreter, const char **argument)
{
    char *p = head + 2, *end = p;
    while (*end && *end != '\n')
        end++;
    if (!*end && end - head >= HEAD - 1)
        return 0; /* a line that the kernel may cut: leave it to the kernel */
    while (end > p && is_blank(end[-1]))
        end--;
    *end = '\0';
    while (is_blank(*p))
        p++;
    if (!*p)
        return 0;
    *interpreter = p;
    while (*p && !is_blank(*p))
        p++;
    if (*p)
        *p++ = '\0';
    while (is_blank(*p))
        p++;
    *argument = *p ? p : NULL;
    return 1;
}

/* Where the bytes of `path` are: *file. Returns 1 if that is not `path` itself, 0 if it is or if
 * only the kernel can tell, -errno if it cannot be executed. */
static int locate(const struct view *v, const char *path, const char **file, struct look_result *r)
{
    *file = path;
    switch (look_up(v, "exec", AT_FDCWD, path, 1, r)) {
    case LOOK_PASS: return 0;
    case LOOK_MISSING: look_hit(v); return -r->err;
    case LOOK_ELSEWHERE:
        look_hit(v);
        *file = r->path;
        return 1;
    case LOOK_HIT: break;
    }
    if (r->entry->kind != BRG_FILE || (r->entry->mode & (S_ISUID | S_ISGID)) ||
        !look_permits(r->entry, X_OK)) {
        look_miss(v, BRG_MISS_UNSUPPORTED, "exec", AT_FDCWD, path);
        return 0;
    }
    *file = look_staged(v, r);
    if (*file && sys_access(*file, X_OK) == 0) {
        look_hit(v);
        return 1;
    }
    look_miss(v, *file ? BRG_MISS_STAGE : BRG_MISS_NO_CONTENT, "exec", AT_FDCWD, path);
    *file = path;
    return 0;
}

static void put_front(struct program *p, const char *interpreter, const char *argument,
                      const char *script)
{
    const char *line[] = {interpreter, argument, script};
    int skip = p->n_front ? 1 : 0; /* a script's interpreter is itself a script: its name stands */
    int n = 0;
    const char *old[PROGRAM_FRONT];
    for (int i = skip; i < p->n_front; i++)
        old[i] = p->front[i];
    int n_old = p->n_front;
    for (int i = 0; i < 3; i++)
        if (line[i])
            p->front[n++] = line[i];
    for (int i = skip; i < n_old; i++)
        p->front[n++] = old[i];
    p->n_front = n;
}

int program_resolve(const struct view *v, const char *path, struct program *p)
{
    struct look_result r;
    const char *current = path, *file;
    p->path = NULL;
    p->n_front = 0;
    for (int depth = 0;; depth++) {
        int moved = locate(v, current, &file, &r);
        if (moved < 0)
            return depth == 0 ? moved : 0; /* the kernel names the interpreter's error */
        const char *interpreter, *argument;
        char *head = p->text[depth < MAX_SCRIPTS ? depth : 0], kept[HEAD];
        long n = moved || !look_covers(v, AT_FDCWD, current, 1) ? read_head(file, kept) : 0;
        if (n < 2 || kept[0] != '#' || kept[1] != '!') {
            if (moved || depth > 0) {
                struct text t = text_in(p->staged, sizeof p->staged);
                text_add(&t, file);
                p->path = t.full ? NULL : p->staged;
            }
            break;
        }
        if (depth == MAX_SCRIPTS) {
            p->path = NULL;
            break;
        }
        memcpy(head, kept, HEAD);
        if (!parse_script(head, &interpreter, &argument)) {
            p->path = NULL;
            break;
        }
        put_front(p, interpreter, argument, current);
        current = interpreter;
    }
    if (!p->path)
        p->n_front = 0;
    return 0;
}

void program_record(const struct view *v, const char *path)
{
    char head[HEAD];
    const char *interpreter, *argument;
    char current[HEAD];
    for (int depth = 0; depth <= MAX_SCRIPTS; depth++) {
        int err = sys_access(path, X_OK);
        record_lookup(v, "exec", -err, AT_FDCWD, path, "");
        if (err != 0 || read_head(path, head) < 2 || head[0] != '#' || head[1] != '!' ||
            !parse_script(head, &interpreter, &argument))
            return;
        struct text t = text_in(current, sizeof current);
        text_add(&t, interpreter);
        path = current;
    }
}

/* ---- environment ---- */

/* Variables that a child must have; of lists only our own element. */
static const char *const kept[] = {"BRIGADE_STAGE", "BRIGADE_STATE",  "BRIGADE_SLOT",
                                   "BRIGADE_VIEW",  "BRIGADE_STRICT", "BRIGADE_RECORD"};
static const struct {
    const char *name, *saved, *mark;
} lists[] = {{"LD_AUDIT", "BRIGADE_SAVED_LD_AUDIT", BRG_AUDIT_NAME},
             {"LD_PRELOAD", "BRIGADE_SAVED_LD_PRELOAD", BRG_PRELOAD_NAME},
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

/* The folder of the Python view: the staged one, or what the wrapper put first at the trial. */
static size_t python_folder(const struct view *v, char *buf, size_t size)
{
    const char *list = view_env(v, "PYTHONPATH");
    struct text t = text_in(buf, size);
    if (v->mode == VIEW_SERVE) {
        text_bytes(&t, v->root, v->root_len);
        text_add(&t, "/.brigade/python");
    } else if (list) {
        text_bytes(&t, list, first_element(list));
    }
    size_t n = t.len;
    text_add(&t, "/_brigade_view.py");
    return n && !t.full && sys_access(buf, R_OK) == 0 ? n : 0;
}

static void keep_python(const struct view *v, char *const envp[], struct program_env *e,
                        struct text *arena)
{
    char ours[PATH_MAX];
    const char *theirs = find_env(envp, "PYTHONPATH");
    size_t n = v->python ? python_folder(v, ours, sizeof ours) : 0;
    if (n && !(theirs && first_element(theirs) == n && memcmp(theirs, ours, n) == 0))
        prepend(e, arena, "PYTHONPATH", "BRIGADE_SAVED_PYTHONPATH", ours, n, theirs);
}

int program_env(const struct view *v, char *const envp[], struct program_env *e)
{
    struct text arena = text_in(e->arena, sizeof e->arena);
    e->n_add = e->n_drop = 0;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        const char *entry = view_env_entry(v, kept[i]);
        if (entry && !find_env(envp, kept[i]))
            e->add[e->n_add++] = entry;
    }
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const char *now = find_env(envp, lists[i].name), *start = view_env(v, lists[i].name);
        const char *ours = start ? element_with(start, lists[i].mark) : NULL;
        if (ours && !(now && element_with(now, lists[i].mark)))
            prepend(e, &arena, lists[i].name, lists[i].saved, ours, first_element(ours), now);
    }
    keep_python(v, envp, e, &arena);
    return e->n_add || e->n_drop;
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
