/* Judging a program by its file. See stoppable.h.
 *
 * A template that does not stop would run the program once more than there are ranks: whatever is
 * not certain to load our libraries is none. Of Python, a process that is no Python itself ends as
 * soon as they are loaded, if they are.
 */
#include "view/stoppable.h"
#include "base/search.h"
#include "base/sys.h"
#include "base/text.h"
#include "view/program.h"
#include "view/trace.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char not_found[] = "the program was not found";
static const char apart[] = "the program is static, or not for this system's C library";
static const char no_python[] = "what is started is no Python, but starts one";

/* Reads the head of a file, with a NUL behind it. How many bytes; 0 if it cannot be read. */
static size_t read_head(const char *path, char *head, size_t size)
{
    int fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
    long n = fd < 0 ? 0 : sys_read(fd, head, size - 1);
    sys_close(fd);
    head[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

/* A program's file: what it is called, and where its bytes are. */
struct file {
    const struct view *view;
    char name[PATH_MAX], where[PATH_MAX];
};

static int locate(void *context, const char *path)
{
    struct file *f = context;
    struct look_result r;
    const char *where;
    int err = program_locate(f->view, path, &where, &r);
    if (err < 0)
        return err;
    struct text t = text_in(f->where, sizeof f->where);
    text_add(&t, where);
    return t.full ? -ENAMETOOLONG : search_is_program(f->where);
}

/* The image answers where it can. Whether it was found. */
static int find(const struct view *v, const char *file, const char *path_list, struct file *f)
{
    f->view = v;
    return search_path(file, path_list, f->name, locate, f) == 0;
}

static const char *judge(const char *path)
{
    char head[SELFMAG + 1];
    if (trace_inspect(path, NULL) != BINARY_JOINS)
        return apart;
    if (read_head(path, head, sizeof head) != SELFMAG || memcmp(head, ELFMAG, SELFMAG) != 0)
        return "the program is a script";
    if (program_gives_rights(path))
        return "the program runs with another user's rights";
    return NULL;
}

const char *stoppable(const struct view *v, const char *file, const char *path_list)
{
    struct file f;
    return find(v, file, path_list, &f) ? judge(f.where) : not_found;
}

/* The same for a Python, whatever the names of links to it. */
static const char *stoppable_interpreter(const struct view *v, const char *file,
                                         const char *path_list)
{
    struct file f;
    char real[PATH_MAX];
    if (!find(v, file, path_list, &f) || !realpath(f.where, real))
        return not_found;
    return text_starts(text_base(real), "python") ? judge(real) : no_python;
}

/* `env python3 PATH ARGUMENT...`, without env. */
static char *const *without_env(const char *python, const char *path, char *const *program)
{
    size_t n = 1;
    while (program[n])
        n++;
    char **words = calloc(n + 2, sizeof *words);
    if (!words || !(words[0] = strdup(python)) || !(words[1] = strdup(path)))
        return NULL;
    memcpy(words + 2, program + 1, (n - 1) * sizeof *words);
    return words;
}

const char *stoppable_python(const struct view *v, const char *file, char *const **program,
                             const char *path_list)
{
    struct file f;
    char head[BINARY_HEAD];
    const char *interpreter, *argument;
    if (!find(v, file, path_list, &f) || !read_head(f.where, head, sizeof head))
        return not_found;
    if (!program_of_script(head, &interpreter, &argument))
        return stoppable_interpreter(v, f.name, path_list);
    if (!text_same(text_base(interpreter), "env"))
        return stoppable_interpreter(v, interpreter, path_list);
    if (!argument || *argument == '-' || strpbrk(argument, "= \t"))
        return no_python;
    const char *why = stoppable_interpreter(v, argument, path_list);
    char *const *words = why ? NULL : without_env(argument, f.name, *program);
    if (words)
        *program = words;
    return words || why ? why : no_python;
}

int stoppable_is_python(const struct view *v, const char *file, char *const *program,
                        const char *path_list)
{
    return stoppable_python(v, file, &program, path_list) != no_python;
}
