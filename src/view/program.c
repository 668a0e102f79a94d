/* Resolving programs. See program.h. */
#include "view/program.h"
#include "view/binary.h"
#include "view/look.h"
#include "view/record.h"
#include "base/sys.h"
#include "base/text.h"

#include <errno.h>
#include <unistd.h>

enum {
    HEAD = BINARY_HEAD,
    MAX_SCRIPTS = 2
};

/* The start of a file, and how it must be started if it is a program; its length, or -errno. */
static long read_head(const char *path, char *buf, enum binary_start *start)
{
    *start = BINARY_JOINS;
    int fd = sys_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    if (fd < 0)
        return fd;
    long n = sys_read(fd, buf, HEAD - 1);
    buf[n > 0 ? n : 0] = '\0';
    if (n > 0)
        *start = binary_inspect(fd, buf, (size_t)n);
    sys_close(fd);
    return n;
}

static int is_blank(char c)
{
    return c == ' ' || c == '\t';
}

int program_of_script(char *head, const char **interpreter, const char **argument)
{
    if (head[0] != '#' || head[1] != '!')
        return 0;
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

/* Whether a copy of the program would not run with the rights that the program itself gives. */
static int has_own_rights(const struct brg_entry *e)
{
    return (e->mode & (S_ISUID | S_ISGID)) || (e->flags & BRG_OWN_RIGHTS);
}

int program_gives_rights(const char *path)
{
    struct stat st;
    return sys_stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
           ((st.st_mode & (S_ISUID | S_ISGID)) ||
            sys_call(SYS_getxattr, (long)path, (long)"security.capability", 0, 0, 0, 0) > 0);
}

int program_locate(const struct view *v, const char *path, const char **file, struct look_result *r)
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
    if (r->entry->kind != BRG_FILE || has_own_rights(r->entry) || !look_permits(r->entry, X_OK)) {
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

/* Resolves `path` (relative to the working directory or absolute). 0, with *p filled; -errno if
 * the image knows that the kernel would refuse: -ENOENT, -ENOTDIR. */
static int resolve(const struct view *v, const char *path, struct program *p)
{
    struct look_result r;
    const char *current = path, *file;
    p->path = NULL;
    p->n_front = p->alone = p->unseen = 0;
    for (int depth = 0;; depth++) {
        int moved = program_locate(v, current, &file, &r);
        if (moved < 0)
            return depth == 0 ? moved : 0; /* the kernel names the interpreter's error */
        const char *interpreter, *argument;
        char *head = p->text[depth < MAX_SCRIPTS ? depth : 0], kept[HEAD];
        enum binary_start start;
        long n = read_head(file, kept, &start);
        if (n < 2 || kept[0] != '#' || kept[1] != '!' ||
            (!moved && look_covers(v, AT_FDCWD, current, 1))) {
            p->alone = start == BINARY_ALONE;
            p->unseen = start != BINARY_JOINS || program_gives_rights(file);
            if (start != BINARY_JOINS && moved)
                look_miss(v, BRG_MISS_UNSUPPORTED, "exec", AT_FDCWD, current);
            if (start == BINARY_JOINS && (moved || depth > 0)) {
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
        if (!program_of_script(head, &interpreter, &argument)) {
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

/* What `path` leads to from here, if only the child will know from where it counts: mostly that is
 * the same. What is not there may be anything. */
static void guess(const struct view *v, const char *path, struct program *p)
{
    if (sys_access(path, X_OK) != 0 || resolve(v, path, p) < 0)
        p->unseen = 1;
    p->path = NULL;
    p->n_front = 0;
}

/* Trial: records `path`, and the interpreter that its first line names, as executed. Returns
 * whether that must be started alone. */
static int record(const struct view *v, const char *path)
{
    char head[HEAD];
    enum binary_start start = BINARY_JOINS;
    const char *interpreter, *argument;
    char current[HEAD];
    for (int depth = 0; depth <= MAX_SCRIPTS; depth++) {
        int err = sys_access(path, X_OK);
        record_lookup(v, "exec", -err, AT_FDCWD, path, "");
        if (err == 0 && depth == 0)
            record_event(v, "child", path);
        if (err != 0 || read_head(path, head, &start) < 2 ||
            !program_of_script(head, &interpreter, &argument))
            break;
        struct text t = text_in(current, sizeof current);
        text_add(&t, interpreter);
        path = current;
    }
    return start == BINARY_ALONE;
}

/* Whether a program starts others on nodes that may not have what is staged on this one. */
static int is_launcher(const char *path)
{
    static const char *const names[] = {"srun",  "sbatch", "salloc",  "oshrun", "aprun",
                                        "jsrun", "flux",   "qsub",    "bsub",   "prun",
                                        "ssh",   "pdsh",   "palsrun", "clush",  NULL};
    static const char *const families[] = {"mpirun", "mpiexec", "orterun", "prterun"};
    const char *name = path ? text_base(path) : "";
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (text_starts(name, families[i]))
            return 1;
    return text_is_one_of(name, names);
}

int program_contains(const char *path)
{
    static const char *const names[] = {
        "apptainer", "singularity",    "ch-run", "shifter", "sarus", "podman", "podman-hpc",
        "docker",    "nerdctl",        "enroot", "udocker", "bwrap", "runc",   "crun",
        "youki",     "systemd-nspawn", "proot",  "nsenter", NULL};
    return path && text_is_one_of(text_base(path), names);
}

/* Not the candidates of a search that are not there. */
static void note_away(const struct view *v, const char *path)
{
    if (!path || sys_access(path, X_OK) != 0)
        return;
    if (v->mode == VIEW_RECORD)
        record_add(v, "away", 0, "", path, "");
    else
        view_note_away(v);
}

/* Whether a program that is not seen may change files of the user's that the image answers for. Not
 * one that takes a rank's place: it is as a rule what finds Python and becomes it. Nor ldconfig,
 * which is static and writes nothing of a user's: `ctypes.util.find_library` of Python asks it. */
static int may_write(const struct view *v, const char *path, char *const envp[])
{
    static const char *const names[] = {"ldconfig", "ldconfig.real", NULL};
    return v->mode == VIEW_SERVE && v->preloaded && !program_only_lists(envp) &&
           !(path && text_is_one_of(text_base(path), names));
}

int program_plan(const struct view *v, const char *path, int followed, char *const envp[],
                 struct program *p, struct program_env *e)
{
    int err = 0;
    p->path = NULL;
    p->n_front = p->alone = p->unseen = 0;
    int contained = program_contains(path) || view_is_away(v);
    int elsewhere = contained || is_launcher(path);
    int alone = elsewhere || program_stands_alone(v, envp);
    if (contained)
        note_away(v, path);
    if (followed && v->mode == VIEW_RECORD)
        p->alone = record(v, path);
    else if (followed && !alone)
        err = resolve(v, path, p);
    else if (path && !alone && v->mode == VIEW_SERVE)
        guess(v, path, p);
    else /* not the candidates of a search that are not there */
        p->unseen = alone && !(followed && sys_access(path, X_OK) != 0);
    if (p->unseen && may_write(v, path, envp))
        look_unseen(v);
    p->alone |= alone;
    e->n_add = e->n_drop = 0;
    if (err == 0 && p->alone)
        program_env_alone(v, envp, elsewhere, e);
    else if (err == 0)
        program_env(v, envp, e);
    return err;
}
