/* brigade-file: what `brigade file` does to files, one JSON object a line.
 *
 * Lines {"done": BYTES, "total": BYTES} tell how far it is; the last line is the outcome, or
 * {"error": TEXT, "errno": NUMBER, "path": ...}. Ends with 0, or 1 after an error. Ctrl-C and
 * SIGTERM end what writes; then nothing of it is left. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "io/tool.h"

#define PROGRESS_NS 100000000

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

/* Unless it was to be ignored (nohup, a shell's job in the background). */
static void listen_to(int number)
{
    struct sigaction action = {.sa_handler = on_signal}, before;
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(number, &action, NULL);
}

int tool_stopped(void)
{
    return stop;
}

void tool_progress(void *context, uint64_t done, uint64_t total)
{
    static uint64_t last;
    struct json j = {0};
    (void)context;
    uint64_t ns = brg_clock_ns();
    if (ns - last < PROGRESS_NS)
        return;
    last = ns;
    json_add(&j, "{");
    tool_add_number(&j, "done", done);
    tool_add_number(&j, "total", total);
    json_add(&j, "}");
    json_print(&j, STDOUT_FILENO);
}

static void add_key(struct json *j, const char *key)
{
    json_add(j, "%s\"%s\": ", j->n && j->text[j->n - 1] != '{' ? ", " : "", key);
}

void tool_add_string(struct json *j, const char *key, const char *text)
{
    add_key(j, key);
    json_add_string(j, text, strlen(text));
}

void tool_add_number(struct json *j, const char *key, uint64_t number)
{
    add_key(j, key);
    json_add(j, "%llu", (unsigned long long)number);
}

int tool_error(const struct brg_error *err)
{
    struct json j = {0};
    json_add(&j, "{");
    tool_add_string(&j, "error", err->text);
    tool_add_number(&j, "errno", (uint64_t)-err->code);
    tool_add_string(&j, "path", err->path);
    json_add(&j, "}");
    json_print(&j, STDOUT_FILENO);
    return 1;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int words;
        int (*run)(char **words);
    } commands[] = {{"verify", 1, tool_verify},       {"info", 1, tool_info},
                    {"join", 2, tool_join},           {"split", 3, tool_split},
                    {"leftovers", 1, tool_leftovers}, {"remove", 1, tool_remove}};
    listen_to(SIGINT);
    listen_to(SIGTERM);
    listen_to(SIGHUP);
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++)
        if (strcmp(argv[1], commands[i].name) == 0 && argc == 2 + commands[i].words)
            return commands[i].run(argv + 2);
    fprintf(stderr, "brigade-file is called by `brigade file`\n");
    return 2;
}
