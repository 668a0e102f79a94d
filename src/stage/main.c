/* brigade-stage: the program that a launcher starts once a node. Here: options and signals. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/static_start.h"
#include "stage/commands.h"
#include "stage/dead.h"
#include "stage/fault.h"
#include "stage/incoming.h"
#include "stage/keeper.h"
#include "stage/mpi.h"
#include "stream/plan.h"

#define EXIT_USAGE 2
#define NO_LIST "is not a list of entry numbers"
#define LINGER_S 2
#define SEGMENT_MAX (1u << 30) /* a message's length must fit an int */

static const char usage[] =
    "usage: brigade-stage put --image FILE --job ID [--base DIR] [--readers N] [--segment BYTES]\n"
    "                         [--workers N] [--mpi PATH|none] [--progress FD] [--timeout SECONDS]\n"
    "                         [--memory BYTES] [--changed ENTRY,ENTRY,...] [--pulse SECONDS]\n"
    "                         [--topology FILE|none] [--launcher HOST --live JOB,JOB,...]\n"
    "                         [--incoming NAME] [--held]\n"
    "       brigade-stage join --image-id HEX --job ID [--base DIR] [--changed ENTRY,ENTRY,...]\n"
    "                         [--pulse SECONDS] [--incoming NAME]\n"
    "       brigade-stage drop --image-id HEX --job ID [--also PREFIX] [--base DIR] [--keep]\n"
    "                         [--pulse SECONDS] [--launcher HOST --live JOB,JOB,...]\n"
    "                         [--incoming NAME]\n"
    "       brigade-stage forget --job ID [--base DIR] [--pulse SECONDS] [--incoming NAME]\n"
    "       brigade-stage clean [--base DIR] [--launcher HOST --live JOB,JOB,...]\n"
    "                           [--over JOB,JOB,...] [--idle SECONDS] [--all] [--dry-run]\n"
    "                           [--pulse SECONDS]\n"
    "In DIR, %r stands for the rank: several \"nodes\" on one machine, for tests.\n";

enum option_code {
    OPT_IMAGE = 1,
    OPT_IMAGE_ID,
    OPT_JOB,
    OPT_ALSO,
    OPT_BASE,
    OPT_READERS,
    OPT_SEGMENT,
    OPT_WORKERS,
    OPT_MPI,
    OPT_PROGRESS,
    OPT_TIMEOUT,
    OPT_CHANGED,
    OPT_MEMORY,
    OPT_TOPOLOGY,
    OPT_INCOMING,
    OPT_LIVE,
    OPT_OVER,
    OPT_LAUNCHER,
    OPT_PULSE,
    OPT_IDLE,
    OPT_ALL,
    OPT_DRY_RUN,
    OPT_HELD,
    OPT_KEEP
};

static const struct option options[] = {
    {"image", 1, NULL, OPT_IMAGE},
    {"image-id", 1, NULL, OPT_IMAGE_ID},
    {"job", 1, NULL, OPT_JOB},
    {"also", 1, NULL, OPT_ALSO},
    {"base", 1, NULL, OPT_BASE},
    {"readers", 1, NULL, OPT_READERS},
    {"segment", 1, NULL, OPT_SEGMENT},
    {"workers", 1, NULL, OPT_WORKERS},
    {"mpi", 1, NULL, OPT_MPI},
    {"progress", 1, NULL, OPT_PROGRESS},
    {"timeout", 1, NULL, OPT_TIMEOUT},
    {"changed", 1, NULL, OPT_CHANGED},
    {"memory", 1, NULL, OPT_MEMORY},
    {"topology", 1, NULL, OPT_TOPOLOGY},
    {"live", 1, NULL, OPT_LIVE},
    {"launcher", 1, NULL, OPT_LAUNCHER},
    {"pulse", 1, NULL, OPT_PULSE},
    {"incoming", 1, NULL, OPT_INCOMING},
    {"over", 1, NULL, OPT_OVER},
    {"idle", 1, NULL, OPT_IDLE},
    {"all", 0, NULL, OPT_ALL},
    {"dry-run", 0, NULL, OPT_DRY_RUN},
    {"held", 0, NULL, OPT_HELD},
    {"keep", 0, NULL, OPT_KEEP},
    {NULL, 0, NULL, 0},
};

struct words {
    const char *value[OPT_KEEP + 1];
};

static int refuse(const char *what, const char *why)
{
    fprintf(stderr, "brigade-stage: %s %s\n%s", what, why, usage);
    return EXIT_USAGE;
}

static int parse(int argc, char **argv, struct words *w)
{
    int code;
    optind = 2;
    while ((code = getopt_long(argc, argv, "", options, NULL)) > 0 && code <= OPT_KEEP)
        w->value[code] = optarg ? optarg : "";
    if (code != -1 || optind != argc)
        return refuse("arguments", "are wrong");
    return 0;
}

/* A decimal number from least to most; `otherwise` if the option is not there. */
static int number(const struct words *w, enum option_code code, uint64_t least, uint64_t most,
                  uint64_t otherwise, uint64_t *out)
{
    const char *text = w->value[code];
    char *end;
    *out = otherwise;
    if (!text)
        return 0;
    errno = 0;
    *out = strtoull(text, &end, 10);
    if (errno || end == text || *end || *text == '-' || *out < least || *out > most) {
        fprintf(stderr, "brigade-stage: '%s' is not a number from %llu to %llu\n", text,
                (unsigned long long)least, (unsigned long long)most);
        return EXIT_USAGE;
    }
    return 0;
}

int put_numbers(const char *text, uint32_t *out, size_t *n)
{
    for (*n = 0; text && *text; (*n)++) {
        char *end;
        unsigned long value = strtoul(text, &end, 10);
        if (end == text || *text == '-' || value > UINT32_MAX || (*end && *end != ','))
            return -1;
        out[*n] = (uint32_t)value;
        text = *end ? end + 1 : end;
    }
    return 0;
}

static const char *base_of(const struct words *w)
{
    const char *set = getenv("BRIGADE_NODE_DIR");
    if (w->value[OPT_BASE])
        return w->value[OPT_BASE];
    return set && *set ? set : "/dev/shm";
}

/* The base with every %r replaced by the rank. */
static char *with_rank(const char *base, uint32_t rank)
{
    char *out = malloc(strlen(base) * 6 + 1), *at = out;
    if (!out)
        return NULL;
    for (; *base; base++) {
        if (base[0] == '%' && base[1] == 'r') {
            at += sprintf(at, "%u", rank);
            base++;
        } else
            *at++ = *base;
    }
    *at = '\0';
    return out;
}

static void note_signal(int number)
{
    put_interrupted = number;
}

/* Before MPI has started there is nothing to undo, and the default is right: to end. */
static void listen_to_signals(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
    struct sigaction action = {.sa_handler = note_signal};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* What is told to put and drop of jobs; others than the launcher's are left alone for an hour. */
static struct dead_known dead_of(const struct words *w)
{
    return (struct dead_known){.live = w->value[OPT_LIVE],
                               .launcher = w->value[OPT_LAUNCHER],
                               .over = w->value[OPT_OVER],
                               .all = w->value[OPT_ALL] != NULL,
                               .idle_s = 3600};
}

/* A process that fails without the others knowing: a launcher that then ends them all may drop what
 * this one has said, if it does not stay for a moment. */
static int fail_alone(int code)
{
    if (keeper_size() > 1)
        sleep(LINGER_S);
    return code;
}

static int put(void *words)
{
    const struct words *w = words;
    struct put_options o = {.start_ns = brg_clock_ns()};
    const char *list = w->value[OPT_CHANGED];
    uint32_t changed[list ? strlen(list) / 2 + 1 : 1];
    uint64_t readers, workers, segment, fd, timeout, memory;
    struct stream_net *net;
    struct brg_error err;
    int stuck = 0;
    if (!w->value[OPT_IMAGE])
        return refuse("--image", "is missing");
    if (!w->value[OPT_JOB])
        return refuse("--job", "is missing");
    if (number(w, OPT_READERS, 1, PLAN_MAX_FLOWS, 4, &readers) ||
        number(w, OPT_WORKERS, 1, 64, 0, &workers) ||
        number(w, OPT_SEGMENT, 4096, SEGMENT_MAX, 1u << 20, &segment) ||
        number(w, OPT_PROGRESS, 0, 1u << 20, UINT64_MAX, &fd) ||
        number(w, OPT_TIMEOUT, 1, 86400, 60, &timeout) ||
        number(w, OPT_MEMORY, 0, UINT64_MAX - 1, UINT64_MAX, &memory))
        return EXIT_USAGE;
    if (put_numbers(list, changed, &o.job.n_changed))
        return refuse(list, NO_LIST);
    o.job.changed = changed;
    if (mpi_start(w->value[OPT_MPI], &net, &err)) {
        put_no_mpi(err.text);
        listen_to_signals();
        return fail_alone(EXIT_NOT_STAGED);
    }
    o.ready_ns = brg_clock_ns();
    listen_to_signals();
    fault_start(net->rank);
    char *base = with_rank(base_of(w), net->rank);
    o.image = w->value[OPT_IMAGE];
    o.job.name = w->value[OPT_JOB];
    o.base = base ? base : base_of(w);
    o.topology = w->value[OPT_TOPOLOGY];
    o.readers = (uint32_t)readers;
    o.workers = (uint32_t)workers;
    o.segment_bytes = (uint32_t)segment;
    o.memory_bytes = memory;
    o.dead = dead_of(w);
    o.progress_fd = fd == UINT64_MAX ? -1 : (int)fd;
    o.timeout_ns = timeout * 1000000000u;
    int code = EXIT_NOT_STAGED;
    if (!w->value[OPT_HELD] || put_hear(&o, net, &stuck, &err) == 0)
        code = put_run(&o, net, &stuck);
    else if (net->rank == 0)
        put_not_wanted(err.text);
    if (w->value[OPT_INCOMING])
        incoming_remove(o.base, w->value[OPT_INCOMING]);
    if (w->value[OPT_INCOMING] && code)
        fail_alone(code);
    if (stuck) {
        /* Slurm turns an abort into SIGKILL at once. The others notice the silence, or get the
         * signal, about when we did: let them clean up first. */
        sleep(put_interrupted ? 1 : LINGER_S);
        net->abort(net, code ? code : EXIT_NOT_STAGED);
        _exit(code);
    }
    net->finish(net);
    free(base);
    return code;
}

/* What names a job on a staged folder must be there and sound. */
static int check_names(const struct words *w)
{
    const char *id = w->value[OPT_IMAGE_ID];
    if (!id)
        return refuse("--image-id", "is missing");
    if (!w->value[OPT_JOB])
        return refuse("--job", "is missing");
    if (strlen(id) != 32 || strspn(id, "0123456789abcdef") != 32)
        return refuse(id, "is not an image id: 32 hex digits");
    return 0;
}

static int join(void *words)
{
    const struct words *w = words;
    struct join_options o = {
        .id = w->value[OPT_IMAGE_ID], .base = base_of(w), .incoming = w->value[OPT_INCOMING]};
    const char *list = w->value[OPT_CHANGED];
    uint32_t changed[list ? strlen(list) / 2 + 1 : 1];
    if (check_names(w))
        return EXIT_USAGE;
    if (put_numbers(list, changed, &o.job.n_changed))
        return refuse(list, NO_LIST);
    o.job.name = w->value[OPT_JOB];
    o.job.changed = changed;
    return join_run(&o);
}

/* Whoever gives up on other nodes: what is here goes all the same. So drop and clean pay no heed to
 * the signal that says so. */
static int drop(void *words)
{
    const struct words *w = words;
    struct drop_options o = {.id = w->value[OPT_IMAGE_ID],
                             .job = w->value[OPT_JOB],
                             .also = w->value[OPT_ALSO],
                             .base = base_of(w),
                             .keep = w->value[OPT_KEEP] != NULL,
                             .dead = dead_of(w)};
    signal(SIGUSR1, SIG_IGN);
    if (o.also && !*o.also)
        return refuse("--also", "needs a name's beginning");
    int code = check_names(w) ? EXIT_USAGE : drop_run(&o);
    if (w->value[OPT_INCOMING])
        incoming_remove(o.base, w->value[OPT_INCOMING]);
    return code;
}

/* What a put that was killed, or that failed elsewhere, has left on this node goes: this job, in
 * whatever image, and what nobody holds. */
static int forget(void *words)
{
    const struct words *w = words;
    if (!w->value[OPT_JOB])
        return refuse("--job", "is missing");
    signal(SIGUSR1, SIG_IGN);
    dead_forget(base_of(w), w->value[OPT_JOB]);
    if (w->value[OPT_INCOMING])
        incoming_remove(base_of(w), w->value[OPT_INCOMING]);
    return 0;
}

static int clean(void *words)
{
    const struct words *w = words;
    struct clean_options o = {.base = base_of(w),
                              .known = dead_of(w),
                              .dry_run = w->value[OPT_DRY_RUN] != NULL,
                              .all = w->value[OPT_ALL] != NULL};
    int code = number(w, OPT_IDLE, 0, UINT32_MAX, 600, &o.known.idle_s);
    signal(SIGUSR1, SIG_IGN);
    return code ? code : clean_run(&o);
}

/* With --pulse beside a keeper. */
static int run_kept(struct words *w, int (*run)(void *words))
{
    uint64_t pulse;
    if (number(w, OPT_PULSE, 1, 3600, 0, &pulse))
        return EXIT_USAGE;
    if (!pulse)
        return run(w);
    char *base = with_rank(base_of(w), keeper_rank());
    struct keeper keeper = {.base = base ? base : base_of(w),
                            .job = w->value[OPT_JOB],
                            .pulse_s = (unsigned)pulse,
                            .explains = w->value[OPT_IMAGE] != NULL};
    int code = keeper_run(&keeper, run, w);
    free(base);
    return code;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void *words);
    } commands[] = {
        {"put", put}, {"join", join}, {"drop", drop}, {"forget", forget}, {"clean", clean}};
    struct words w = {{NULL}};
    static_start_show();
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(argv[1], commands[i].name) != 0)
            continue;
        int code = parse(argc, argv, &w);
        return code ? code : run_kept(&w, commands[i].run);
    }
    return refuse(argc < 2 ? "a command" : argv[1], "must be put, join, drop, forget or clean");
}
