/* Programs behind wrappers. See behind.h. */
#include "view/behind.h"
#include "base/sys.h"
#include "base/text.h"

#include <unistd.h>

static int is_python(const char *path)
{
    return text_starts(text_base(path), "python");
}

/* Whether one of the arguments is `word`, or has it for its last part. */
static int has_argument(char *const argv[], const char *word)
{
    for (size_t i = 1; argv[0] && argv[i]; i++)
        if (text_same(argv[i], word) || text_same(text_base(argv[i]), word))
            return 1;
    return 0;
}

/* Whether the file that `path` leads to is called `name`. */
static int leads_to(const struct view *v, const char *path, const char *name)
{
    char real[PATH_MAX];
    int staged, fd = sys_open(path, O_PATH | O_CLOEXEC, 0);
    long n = view_fd_path(v, fd, real, sizeof real, &staged);
    if (fd >= 0)
        sys_close(fd);
    return n > 0 && text_same(text_base(real), name);
}

int behind_looks_like(const struct view *v, const char *kind, const char *word, const char *real,
                      const char *path, char *const argv[])
{
    word += text_starts(word, BRG_BEHIND_SEVERAL) ? sizeof BRG_BEHIND_SEVERAL - 1 : 0;
    const char *name = text_base(word);
    if (!text_starts(kind, "python"))
        return real ? text_same(text_base(real), name) : leads_to(v, path, name);
    if (text_starts(word, BRG_BEHIND_MODULE))
        return is_python(path) && has_argument(argv, word + sizeof BRG_BEHIND_MODULE - 1);
    return text_same(text_base(path), name) || (is_python(path) && has_argument(argv, name));
}

int behind_is_near(const struct view *v, const char *real, const char *path, char *const argv[],
                   char rank[PATH_MAX])
{
    const char *kind = v->mode == VIEW_SERVE ? view_env(v, BRG_FORK_BEHIND_VARIABLE) : NULL;
    const char *word = kind;
    while (word && *word && *word != ' ')
        word++;
    if (!word || !*word || !argv || !argv[0] ||
        !behind_looks_like(v, kind, word + 1, real, path, argv))
        return 0;
    struct text t = text_in(rank, PATH_MAX);
    text_bytes(&t, v->root, v->root_len);
    text_add(&t, "/.brigade/bin/brigade-rank");
    return !t.full && sys_access(rank, X_OK) == 0;
}

void behind_arguments(const char *path, char *const argv[], char **args)
{
    size_t at = 0;
    args[at++] = (char *)"brigade-rank";
    args[at++] = (char *)BRG_BEHIND_OPTION;
    args[at++] = (char *)path;
    args[at++] = (char *)"--";
    for (size_t i = 0; argv[i]; i++)
        args[at++] = argv[i];
    args[at] = NULL;
}
