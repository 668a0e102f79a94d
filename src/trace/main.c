/* brigade-trace: becomes a program whose system calls are traced.
 *
 *   brigade-trace --out FOLDER [--rank auto|N] [--all-stops] [--no-entry] [--behind-shell]
 *                 [--search-last word|whole] [--] PROGRAM ARGS...
 *
 * The trace goes to FOLDER, <host>.<pid>.<start>.trace, as docs/format.md says. The program's
 * process number, exit status, streams and signals are its own: this process becomes it. Statically
 * linked, so that nothing is searched for before the program itself.
 *
 * What must stay true: whatever is refused, the program is started.
 */
#include "trace/file.h"
#include "base/kept.h"
#include "base/search.h"
#include "base/search_last.h"
#include "base/static_start.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: brigade-trace --out FOLDER [--rank auto|N] [--all-stops] [--no-entry]\n"
    "                     [--behind-shell] [--search-last word|whole] [--] PROGRAM [ARGS...]\n"
    "\n"
    "Becomes PROGRAM and writes its system calls on files to FOLDER.\n"
    "  --out FOLDER   where the trace goes; must exist\n"
    "  --rank N       the rank, where the environment has none (auto: what it has)\n"
    "  --all-stops    no seccomp filter: slower; the program outlives its tracer\n"
    "  --no-entry     do not find out when libraries are loaded: starts a few ms sooner\n"
    "  --behind-shell give PROGRAM the variables that BRIGADE_KEPT keeps from a shell\n"
    "  --search-last  word, whole: look for PROGRAM in the working directory after PATH\n";

struct options {
    const char *out, *rank, *last;
    int all_stops, no_entry, behind_shell, help;
    char **program;
};

/* Returns 0, or -1 if the command line is wrong. */
static int parse(char **argv, struct options *o)
{
    for (argv++; *argv && (*argv)[0] == '-'; argv++) {
        if (strcmp(*argv, "--") == 0) {
            argv++;
            break;
        }
        if (strcmp(*argv, "--all-stops") == 0)
            o->all_stops = 1;
        else if (strcmp(*argv, "--help") == 0)
            o->help = 1;
        else if (strcmp(*argv, "--no-entry") == 0)
            o->no_entry = 1;
        else if (strcmp(*argv, "--behind-shell") == 0)
            o->behind_shell = 1;
        else if (strcmp(*argv, "--out") == 0 && argv[1])
            o->out = *++argv;
        else if (strcmp(*argv, "--search-last") == 0 && argv[1])
            o->last = *++argv;
        else if (strcmp(*argv, "--rank") == 0 && argv[1])
            o->rank = *++argv;
        else
            return -1;
    }
    o->program = argv;
    return (*argv && o->out) || o->help ? 0 : -1;
}

/* Where execvp would find `name`, or NULL with errno. Done before tracing, so that the search is
 * not in the trace. With a slash nothing is searched: exec is to say what it is. */
static const char *find(const char *name, const char *last, char buf[PATH_MAX])
{
    if (strchr(name, '/'))
        return name;
    errno = -search_program(name, search_last(last), buf);
    return errno ? NULL : buf;
}

/* As execvp does with what has no format: a shell reads it. */
static void execute(const char *path, char **argv)
{
    size_t n = 0;
    execv(path, argv);
    if (errno != ENOEXEC)
        return;
    while (argv[n])
        n++;
    char **words = calloc(n + 2, sizeof *words);
    if (!words)
        return;
    words[0] = (char *)"/bin/sh";
    words[1] = (char *)path;
    for (size_t i = 1; i < n; i++)
        words[i + 1] = argv[i];
    execv(words[0], words);
}

int main(int argc, char **argv)
{
    static struct trace_file file;
    struct options o = {0};
    char found[PATH_MAX], folder[PATH_MAX];
    (void)argc;
    static_start_show();
    if (parse(argv, &o) != 0) {
        fputs(usage, stderr);
        return 2;
    }
    if (o.help)
        return fputs(usage, stdout) < 0;
    if (o.behind_shell)
        kept_restore();
    const char *path = find(o.program[0], o.last, found);
    int err = errno;
    if (realpath(o.out, folder)) {
        int32_t rank = o.rank && o.rank[0] >= '0' && o.rank[0] <= '9' ? (int32_t)atol(o.rank) : -1;
        trace_file_create(&file, folder);
        if (o.no_entry)
            file.sink.entry = NULL;
        trace_start(&file.sink, o.all_stops ? TRACE_ALL : TRACE_SECCOMP, rank);
    } else {
        fprintf(stderr, "brigade-trace: %s: %s; %s runs untraced\n", o.out, strerror(errno),
                o.program[0]);
    }
    if (path) {
        execute(path, o.program);
        err = errno;
    }
    fprintf(stderr, "brigade-trace: %s: %s\n", o.program[0], strerror(err));
    return err == ENOENT || err == ENOTDIR ? 127 : 126;
}
