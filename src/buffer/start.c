/* The library's start and end: its settings, the real calls, fork. See hooks.h and file.h. */
#include "buffer/hooks.h"
#include "base/real_find.h"
#include "buffer/faults.h"
#include "buffer/signals.h"
#include "buffer/worker.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void say(const char *what, const char *text)
{
    char line[512];
    int n =
        snprintf(line, sizeof line, "brigade buffer: %s: %s; that rule is left out\n", what, text);
    sys_write(2, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

static void read_settings(void)
{
    char wrong[300];
    const char *name = "BRIGADE_BUFFER", *text = getenv(name);
    if (!text)
        text = getenv(name = "IOBUF_PARAMS");
    if (!text)
        return;
    rules_parse(&rules, text, wrong, sizeof wrong);
    if (wrong[0])
        say(name, wrong);
    const char *memory = getenv("BRIGADE_BUFFER_MEMORY");
    uint64_t bytes = memory ? strtoull(memory, NULL, 10) : 0;
    if (bytes)
        memory_limit(bytes);
}

static void fork_prepare(void)
{
    file_fork_begin();
}
static void fork_parent(void)
{
    file_fork_end(0);
}
static void fork_child(void)
{
    file_fork_end(1);
}

static int any_rule_buffers(void)
{
    for (unsigned i = 0; i < rules.n; i++)
        if (!rules.rule[i].off)
            return 1;
    return 0;
}

__attribute__((constructor)) static void start_of_process(void)
{
    struct rlimit limit;
    int saved = errno;
    real_find_all();
    data_start();
    read_settings();
    if (any_rule_buffers()) {
        if (REAL(prlimit)(0, RLIMIT_FSIZE, NULL, &limit) == 0)
            file_limit_bytes = limit.rlim_cur;
        faults_start();
        report_start();
        stdio_start();
        pthread_atfork(fork_prepare, fork_parent, fork_child);
        buffer_active = 1;
    }
    errno = saved;
}

/* What exit() does after this, of streams above all, goes to the kernel directly. */
__attribute__((destructor)) static void end_of_process(void)
{
    if (!buffer_active)
        return;
    file_end();
    buffer_active = 0;
    report_write();
}
