/* Runs in a rank of `brigade bench cload`: a program with all libraries behind it.
 *
 * Two programs from one text. START is what the launcher starts: it takes the time, sets
 * LD_LIBRARY_PATH if SEARCH (folders relative to the world's, separated by ':') is to be found by
 * it, and becomes the other. That one has the libraries linked, or with OPENED opens them by name;
 * it visits each, and prints one line that `brigade bench` gathers. "table.h" is generated. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static long long now_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void fail(const char *what)
{
    fprintf(stderr, "cload: %s\n", what);
    exit(1);
}

#ifdef START
/* The world's folder: this program is bin/cload in it. */
static void find_world(char *world, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", world, size - 1);
    if (n < 0)
        fail("/proc/self/exe cannot be read");
    world[n] = '\0';
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(world, '/');
        if (!slash)
            fail("where is this program?");
        *slash = '\0';
    }
}

#ifdef SEARCH
static void set_search(const char *world)
{
    static char folders[] = SEARCH;
    const char *own = getenv("LD_LIBRARY_PATH");
    char *value = calloc(1, sizeof folders * (strlen(world) + 2) + (own ? strlen(own) : 0) + 2);
    if (!value)
        fail("no memory");
    for (char *folder = strtok(folders, ":"); folder; folder = strtok(NULL, ":")) {
        strcat(strcat(strcat(value, world), "/"), folder);
        strcat(value, ":");
    }
    strcat(value, own ? own : "");
    if (!own)
        value[strlen(value) - 1] = '\0';
    setenv("LD_LIBRARY_PATH", value, 1);
}
#endif

int main(void)
{
    char world[PATH_MAX], program[PATH_MAX + 16], begin[24];
    find_world(world, sizeof world);
    snprintf(program, sizeof program, "%s/bin/cload-main", world);
#ifdef SEARCH
    set_search(world);
#endif
    snprintf(begin, sizeof begin, "%lld", now_ns(CLOCK_MONOTONIC));
    execl(program, program, begin, (char *)NULL);
    fail("bin/cload-main cannot be started");
}

#else
#include "table.h"

static int rank(void)
{
    static const char *const names[] = {"BRIGADE_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID",
                                        "OMPI_COMM_WORLD_RANK"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]))
            return atoi(getenv(names[i]));
    return 0;
}

#ifdef OPENED
static u (*visits[count])(void);

static void load_all(void)
{
    for (int i = 0; i < count; i++) {
        void *library = dlopen(files[i], RTLD_LAZY | RTLD_LOCAL);
        if (!library)
            fail(dlerror());
        *(void **)&visits[i] = dlsym(library, names[i]);
        if (!visits[i])
            fail(dlerror());
    }
}
#else
static void load_all(void)
{
}
#endif

int main(int argc, char **argv)
{
    long long main_ns = now_ns(CLOCK_REALTIME), entered = now_ns(CLOCK_MONOTONIC);
    char host[256] = "", line[1024];
    u sum = 0;
    load_all();
    long long loaded = now_ns(CLOCK_MONOTONIC);
    for (int i = 0; i < count; i++)
        sum += visits[i]();
    long long visited = now_ns(CLOCK_MONOTONIC);
    gethostname(host, sizeof host - 1);
    int n =
        snprintf(line, sizeof line,
                 "brigade-bench: {\"rank\": %d, \"host\": \"%s\", \"main_ns\": %lld, "
                 "\"startup\": %.9f, \"load\": %.9f, \"visit\": %.9f, "
                 "\"checksum\": \"%016llx\"}\n",
                 rank(), host, main_ns, (double)(entered - (argc > 1 ? atoll(argv[1]) : 0)) / 1e9,
                 (double)(loaded - entered) / 1e9, (double)(visited - loaded) / 1e9, sum);
    int wrote = write(1, line, (size_t)n) == n;
    const char *hold = getenv("BRIGADE_BENCH_HOLD"); /* a file: goes on when that is gone */
    while (hold && access(hold, F_OK) == 0)
        usleep(10000);
    return !wrote;
}
#endif
