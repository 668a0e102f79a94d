/* Judging a program by its file. See stoppable.h.
 *
 * A template that does not stop would run the program once more than there are ranks: whatever is
 * not certain to load our libraries is none. Of Python, a process that is no Python itself ends as
 * soon as they are loaded, if they are.
 */
#include "view/stoppable.h"
#include "base/sys.h"
#include "base/text.h"
#include "view/program.h"
#include "view/trace.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

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

const char *stoppable(const char *file, const char *path_list)
{
    char path[PATH_MAX], head[SELFMAG + 1];
    struct stat st;
    if (!trace_find(file, path_list, path, sizeof path))
        return not_found;
    if (trace_inspect(path, path_list) != BINARY_JOINS)
        return apart;
    if (read_head(path, head, sizeof head) != SELFMAG || memcmp(head, ELFMAG, SELFMAG) != 0)
        return "the program is a script";
    if (sys_stat(path, &st) != 0 || (st.st_mode & (S_ISUID | S_ISGID)) ||
        getxattr(path, "security.capability", NULL, 0) > 0)
        return "the program runs with another user's rights";
    return NULL;
}

/* The same for a Python, whatever the names of links to it. */
static const char *stoppable_interpreter(const char *file, const char *path_list)
{
    char path[PATH_MAX], real[PATH_MAX];
    if (!trace_find(file, path_list, path, sizeof path) || !realpath(path, real))
        return not_found;
    return text_starts(text_base(real), "python") ? stoppable(real, path_list) : no_python;
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

const char *stoppable_python(char *const **program, const char *path_list)
{
    char path[PATH_MAX], head[BINARY_HEAD];
    const char *interpreter, *argument;
    if (!trace_find(**program, path_list, path, sizeof path) || !read_head(path, head, sizeof head))
        return not_found;
    if (!program_of_script(head, &interpreter, &argument))
        return stoppable_interpreter(path, path_list);
    if (!text_same(text_base(interpreter), "env"))
        return stoppable_interpreter(interpreter, path_list);
    if (!argument || *argument == '-' || strpbrk(argument, "= \t"))
        return no_python;
    const char *why = stoppable_interpreter(argument, path_list);
    char *const *words = why ? NULL : without_env(argument, path, *program);
    if (words)
        *program = words;
    return words || why ? why : no_python;
}
