/* brigade-file: what `brigade file` does to files, one JSON object a line.
 *
 *     brigade-file verify PATH
 *
 * Lines {"done": BYTES, "total": BYTES} tell how far it is; the last line is the outcome, or
 * {"error": TEXT, "errno": NUMBER}. Ends with 0, or 1 after an error. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "io/check.h"

#define PROGRESS_NS 100000000

static void tell_progress(void *context, uint64_t done, uint64_t total)
{
    static uint64_t last;
    struct timespec now;
    struct json j = {0};
    (void)context;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    if (ns - last < PROGRESS_NS)
        return;
    last = ns;
    json_add(&j, "{\"done\": %llu, \"total\": %llu}", (unsigned long long)done,
             (unsigned long long)total);
    json_print(&j, STDOUT_FILENO);
}

static int tell_error(const struct brg_error *err)
{
    struct json j = {0};
    json_add(&j, "{\"error\": ");
    json_add_string(&j, err->text, strlen(err->text));
    json_add(&j, ", \"errno\": %d}", -err->code);
    json_print(&j, STDOUT_FILENO);
    return 1;
}

static int verify(char **words)
{
    static struct check_report report; /* too large for a stack */
    struct brg_error err;
    struct json j = {0};
    if (check_file(words[0], tell_progress, NULL, &report, &err))
        return tell_error(&err);
    json_add(&j, "{\"bytes\": %llu, \"block_bytes\": %llu, \"blocks\": %llu, \"parts\": %d, ",
             (unsigned long long)report.size, (unsigned long long)report.block_bytes,
             (unsigned long long)report.n_blocks, report.parts);
    json_add(&j, "\"damaged\": %llu, \"listed\": [", (unsigned long long)report.n_bad);
    for (uint64_t i = 0; i < report.n_bad && i < CHECK_LISTED; i++) {
        const struct check_bad *bad = &report.bad[i];
        json_add(&j, "%s{\"path\": ", i ? ", " : "");
        json_add_string(&j, bad->path, strlen(bad->path));
        json_add(&j,
                 ", \"offset\": %llu, \"bytes\": %llu, \"what\": ", (unsigned long long)bad->offset,
                 (unsigned long long)bad->bytes);
        json_add_string(&j, bad->what, strlen(bad->what));
        json_add(&j, "}");
    }
    json_add(&j, "]}");
    return json_print(&j, STDOUT_FILENO) != 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int words;
        int (*run)(char **words);
    } commands[] = {{"verify", 1, verify}};
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++)
        if (strcmp(argv[1], commands[i].name) == 0 && argc == 2 + commands[i].words)
            return commands[i].run(argv + 2);
    fprintf(stderr, "brigade-file: called by `brigade file`\n");
    return 2;
}
