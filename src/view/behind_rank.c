/* Who is the program behind wrappers. See behind_rank.h. */
#include "view/behind_rank.h"
#include "base/search.h"
#include "base/sys.h"
#include "base/text.h"
#include "fork/begin.h"
#include "fork/width.h"
#include "view/behind.h"
#include "view/program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* `path` as Python's os.path.abspath() has it: no file is asked. */
static int absolute(const char *path, char buf[PATH_MAX])
{
    char whole[2 * PATH_MAX], cwd[PATH_MAX] = "";
    size_t at = 0;
    if (path[0] != '/' && !getcwd(cwd, sizeof cwd))
        return 0;
    if ((size_t)snprintf(whole, sizeof whole, "%s/%s", cwd, path) >= sizeof whole)
        return 0;
    char *rest = NULL;
    for (char *part = strtok_r(whole, "/", &rest); part; part = strtok_r(NULL, "/", &rest)) {
        if (text_same(part, "."))
            continue;
        if (text_same(part, "..")) {
            while (at > 0 && buf[--at] != '/')
                ;
            continue;
        }
        size_t n = strlen(part);
        if (at + n + 2 > PATH_MAX)
            return 0;
        buf[at++] = '/';
        memcpy(buf + at, part, n);
        at += n;
    }
    buf[at] = '\0';
    return 1;
}

static int names(const char *path, const char *word)
{
    char whole[PATH_MAX];
    return absolute(path, whole) && text_same(whole, word);
}

/* Whether a Python with these arguments executes the script, or the module, `word`. */
static int runs(char *const argv[], const char *word)
{
    static const char module[] = BRG_BEHIND_MODULE;
    const char *wanted = text_starts(word, module) ? word + sizeof module - 1 : NULL;
    size_t i = 1;
    for (; argv[i] && argv[i][0] == '-' && argv[i][1]; i++) {
        if (text_same(argv[i], "--")) {
            i++;
            break;
        }
        if (argv[i][1] == '-')
            return 0; /* it may have its value in the next word */
        for (const char *letter = argv[i] + 1; *letter; letter++) {
            const char *value = letter[1] ? letter + 1 : argv[i + 1];
            if (*letter == 'c' || (*letter == 'm' && !value))
                return 0;
            if (*letter == 'm')
                return wanted && text_same(value, wanted);
            if (*letter != 'W' && *letter != 'X')
                continue;
            if (!letter[1] && !argv[++i])
                return 0;
            break;
        }
    }
    return argv[i] && !wanted && names(argv[i], word);
}

/* Whether the bytes of `file` are those at `word`. */
static int is_file(const struct view *v, const char *file, const char *word)
{
    char real[PATH_MAX];
    struct look_result r;
    const char *where;
    int moved = program_locate(v, file, &where, &r);
    if (moved < 0)
        return 0;
    if (text_same(view_original(v, where), word))
        return 1;
    return !moved && realpath(where, real) && text_same(real, word);
}

static int are_several(const struct behind *b)
{
    return text_starts(b->word, BRG_BEHIND_SEVERAL);
}

int behind_is(const struct view *v, const struct behind *b, const char *file, char *const argv[])
{
    const char *word = b->word + (are_several(b) ? sizeof BRG_BEHIND_SEVERAL - 1 : 0);
    int is_searched = !strchr(file, '/');
    if (!text_same(b->kind, "python")) {
        char path[PATH_MAX];
        return is_file(v, search_program(file, getenv("PATH"), path) < 0 ? file : path, word);
    }
    if (is_searched ? text_same(file, text_base(word)) : names(file, word))
        return 1; /* a script that is executed itself */
    return text_starts(text_base(file), "python") && runs(argv, word);
}

int behind_leave(const struct view *v, const struct behind *b, const char *file, char *const argv[])
{
    char *words = NULL, self[24];
    struct text t = text_in(self, sizeof self);
    if (asprintf(&words, "%s %s", b->kind, b->word) < 0)
        return -ENOMEM;
    int err = setenv(BRG_FORK_BEHIND_VARIABLE, words, 1);
    free(words);
    if (b->pins && !err)
        err = setenv(BRG_FORK_PINS_VARIABLE, b->pins, 1);
    text_number(&t, (uint64_t)getpid(), 10);
    if (!err && behind_looks_like(v, b->kind, b->word, NULL, file, argv))
        err = setenv(BRG_FORK_SEEN_VARIABLE, self, 1);
    return err ? -ENOMEM : 0;
}

int behind_take(struct behind *b)
{
    const char *words = getenv(BRG_FORK_BEHIND_VARIABLE), *pins = getenv(BRG_FORK_PINS_VARIABLE);
    char *kind = words ? strdup(words) : NULL, *word = kind ? strchr(kind, ' ') : NULL;
    *b = (struct behind){kind, word ? word + 1 : NULL, pins ? strdup(pins) : NULL};
    unsetenv(BRG_FORK_BEHIND_VARIABLE);
    unsetenv(BRG_FORK_PINS_VARIABLE);
    unsetenv(BRG_FORK_SEEN_VARIABLE);
    if (!word)
        return -ENOENT;
    *word = '\0';
    return 0;
}

int behind_width(const struct behind *b)
{
    const char *text = getenv("LOCAL_WORLD_SIZE");
    int launched = text ? atoi(text) : 0, width = fork_width();
    if (are_several(b) && !launched)
        return 0;
    return launched > width ? launched : width;
}

int behind_is_traced(void)
{
    char text[4096];
    return sys_read_text("/proc/self/status", text, sizeof text) > 0 &&
           text_line_number(text, "TracerPid:") != 0;
}
