/* See audit_behind.h. */
#include "view/audit_behind.h"
#include "base/sys.h"
#include "base/text.h"
#include "view/behind.h"

#include <elf.h>
#include <link.h>
#include <sys/syscall.h>

enum {
    WORDS = 4096, /* arguments, or variables: more are not looked at */
    BYTES = 256 << 10
};

/* The strings of a block that ends each with a NUL, into `strings`. 0 if there are too many. */
static int split(char *block, size_t bytes, char *strings[WORDS])
{
    int n = 0;
    for (char *at = block; at < block + bytes; at += strlen(at) + 1) {
        if (n == WORDS - 1)
            return 0;
        strings[n++] = at;
    }
    strings[n] = NULL;
    return n;
}

/* What the kernel was asked to execute, as it was spelled; NULL if it does not say. */
static const char *executed(void)
{
    ElfW(auxv_t) notes[64];
    int fd = sys_open("/proc/self/auxv", O_RDONLY | O_CLOEXEC, 0);
    long n = fd < 0 ? 0 : sys_read(fd, notes, sizeof notes);
    if (fd >= 0)
        sys_close(fd);
    for (long i = 0; i < n / (long)sizeof *notes; i++)
        if (notes[i].a_type == AT_EXECFN)
            return (const char *)notes[i].a_un.a_val;
    return NULL;
}

static int is_this_program(const char *path)
{
    struct stat one, other;
    return path && sys_stat(path, &one) == 0 && sys_stat("/proc/self/exe", &other) == 0 &&
           one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

static int was_seen(const struct view *v)
{
    return text_to_number(view_env(v, BRG_FORK_SEEN_VARIABLE), -1) == sys_getpid();
}

void audit_behind(const struct view *v)
{
    static char words[BYTES], rank[PATH_MAX], *argv[WORDS], *args[WORDS + BEHIND_FRONT],
        *env[WORDS];
    if (v->mode != VIEW_SERVE || !view_env(v, BRG_FORK_BEHIND_VARIABLE) || was_seen(v))
        return;
    long n = sys_read_text("/proc/self/cmdline", words, sizeof words);
    if (n <= 0 || n >= BYTES - 1 || !split(words, (size_t)n, argv))
        return;
    const char *path = executed();
    if (!is_this_program(path))
        path = argv[0]; /* a script's interpreter, as the script spells it */
    if (!is_this_program(path) || !behind_is_near(v, v->exe, path, argv, rank) ||
        !split((char *)v->env, v->env_bytes, env))
        return;
    behind_arguments(path, argv, args);
    sys_call(SYS_execve, (long)rank, (long)args, (long)env, 0, 0, 0);
}
