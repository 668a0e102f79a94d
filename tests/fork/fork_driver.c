/* A rank process and a template in one, without the view, for tests of what passes between them.
 *
 *   fork_driver rank FOLDER N_LOCAL WORDS...     stands for a rank that executes WORDS, or, if it
 *                                                was refused, says "plain: WHY" and executes them
 *   fork_driver width LIST NODE                  prints fork_width_in()
 *   fork_driver twins RANKS PROCESSORS           prints twins_wanted()
 *
 * The word "environ" is no program: the rank writes its /proc/self/environ.
 * FORK_DRIVER_KEY stands for the words when a template is looked for.
 * FORK_DRIVER_DOUBTS names a file to which each look at the program adds a line; FORK_DRIVER_DOUBT
 * is what such a look finds.
 * FORK_DRIVER_WARM (in the first rank's environment) is what the template does before it serves:
 * "exit", "sleep SECONDS", "open" (leaves a file open), "refuse". With FORK_DRIVER_TWINS it has
 * twins.
 */
#include "fork/begin.h"
#include "fork/template.h"
#include "fork/twins.h"
#include "fork/width.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char **words;

static void execute(char *const *program)
{
    execvp(program[0], program);
    perror(program[0]);
    _exit(127);
}

/* The template is this program again. */
static void execute_template(void *self)
{
    (void)self;
    char *again[] = {"fork_driver", "template", NULL};
    execv("/proc/self/exe", again);
}

static const char *doubt(void *self)
{
    const char *path = getenv("FORK_DRIVER_DOUBTS");
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    (void)self;
    if (fd >= 0 && (write(fd, "looked\n", 7) != 7 || close(fd) != 0))
        _exit(5);
    return getenv("FORK_DRIVER_DOUBT");
}

static void warm_up(const char *how)
{
    if (!how)
        return;
    if (strcmp(how, "exit") == 0)
        _exit(3);
    if (strncmp(how, "sleep ", 6) == 0)
        usleep((useconds_t)(1e6 * strtod(how + 6, NULL)));
    if (strcmp(how, "open") == 0 && open("/dev/zero", O_RDONLY) < 0)
        _exit(4);
    if (strcmp(how, "refuse") == 0)
        template_refuse_all("the test said so");
}

/* A rank finds what it is to execute in its own environment: the template serves any. */
static void become_program(void)
{
    char *list[64], *text = getenv("FORK_DRIVER_WORDS"), *next = NULL;
    size_t n = 0;
    text = text ? strdup(text) : NULL;
    for (char *word = text ? strtok_r(text, "\x1f", &next) : NULL; word && n < 63;
         word = strtok_r(NULL, "\x1f", &next))
        list[n++] = word;
    list[n] = NULL;
    unsetenv("FORK_DRIVER_WORDS");
    if (n > 0 && strcmp(list[0], "environ") == 0) {
        char piece[4096];
        ssize_t got;
        int fd = open("/proc/self/environ", O_RDONLY);
        while ((got = read(fd, piece, sizeof piece)) > 0 && write(1, piece, (size_t)got) == got)
            ;
        exit(0);
    }
    execute(list);
}

static void multiply(void)
{
    for (uint32_t n = getenv("FORK_DRIVER_TWINS") ? template_twins() : 0; n > 0; n--) {
        if (fork() == 0) {
            template_become_twin();
            return;
        }
        template_twin_forked();
    }
}

static int serve(void)
{
    struct template_request request;
    const char *socket = getenv(BRG_FORK_SOCKET_VARIABLE);
    if (!template_begin(socket))
        return 125;
    warm_up(getenv("FORK_DRIVER_WARM"));
    multiply();
    while (template_wait(&request)) {
        pid_t child = fork();
        if (child == 0) {
            template_child();
            template_begin_rank();
            become_program();
        }
        template_forked(child < 0 ? -errno : child);
    }
    return 0;
}

static int be_rank(char **argv)
{
    char joined[65536] = "";
    words = argv + 4;
    char *key[] = {getenv("FORK_DRIVER_KEY"), NULL};
    struct fork_job job = {.folder = argv[2],
                           .kind = "main",
                           .program = key[0] ? key : words,
                           .n_local = atoi(argv[3]),
                           .doubt = doubt,
                           .execute = execute_template};
    for (char **word = words; *word; word++) {
        strcat(joined, *word);
        strcat(joined, "\x1f");
    }
    setenv("FORK_DRIVER_WORDS", joined, 1);
    const char *why = fork_stand_in(&job);
    unsetenv("FORK_DRIVER_WORDS");
    if (why)
        fprintf(stderr, "plain: %s\n", why);
    execute(words);
    return 127;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "template") == 0)
        return serve();
    if (argc == 4 && strcmp(argv[1], "width") == 0)
        return printf("%d\n", fork_width_in(argv[2], atoi(argv[3]))) < 0;
    if (argc == 4 && strcmp(argv[1], "twins") == 0)
        return printf("%u\n", twins_wanted(atoi(argv[2]), (uint64_t)atoi(argv[3]))) < 0;
    if (argc > 4 && strcmp(argv[1], "rank") == 0)
        return be_rank(argv);
    return 2;
}
