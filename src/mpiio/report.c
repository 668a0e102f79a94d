/* See report.h. */
#include "mpiio/report.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/decimal.h"

#define MOST 32 /* further kinds count as the last */

static _Thread_local const char *in_call = "?";

struct tally {
    const char *what; /* a literal */
    uint64_t n;
};

static struct {
    pthread_mutex_t lock;
    struct {
        uint64_t calls, bytes, ns;
    } done[2];                 /* reads, writes */
    struct tally passed[MOST]; /* calls, by why */
    uint64_t late[LATE_FOR_HINTS + 1];
    struct tally opened_for[MOST]; /* files that MPI opened later, by the call */
    char file[1400];               /* the first word about a file */
    char failure[1024];
} report = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int is_set_to(const char *word)
{
    const char *value = getenv("BRIGADE_MPIIO");
    return value && strcmp(value, word) == 0;
}

int report_is_off(void)
{
    return is_set_to("off");
}

/* What a program changes of its environment after the first call is not seen. */
static int is_verbose(void)
{
    static _Atomic int known; /* 1: no, 2: yes */
    int now = atomic_load_explicit(&known, memory_order_relaxed);
    if (!now) {
        now = 1 + is_set_to("verbose");
        atomic_store_explicit(&known, now, memory_order_relaxed);
    }
    return now == 2;
}

static void count(struct tally tallies[MOST], const char *what)
{
    int i = 0;
    while (i < MOST - 1 && tallies[i].what && strcmp(tallies[i].what, what) != 0)
        i++;
    if (!tallies[i].what)
        tallies[i].what = what;
    tallies[i].n++;
}

void report_passed(const char *why)
{
    pthread_mutex_lock(&report.lock);
    count(report.passed, why);
    pthread_mutex_unlock(&report.lock);
}

uint64_t report_now(void)
{
    return is_verbose() ? brg_clock_ns() : 0;
}

void report_done(int write, uint64_t bytes, uint64_t began_ns, const char *failure)
{
    if (!is_verbose())
        return;
    uint64_t ns = brg_clock_ns() - began_ns;
    pthread_mutex_lock(&report.lock);
    report.done[write].calls++;
    report.done[write].bytes += bytes;
    report.done[write].ns += ns;
    pthread_mutex_unlock(&report.lock);
    if (failure)
        report_failed(failure);
}

void report_failed(const char *failure)
{
    pthread_mutex_lock(&report.lock);
    if (!report.failure[0])
        snprintf(report.failure, sizeof report.failure, "%s", failure);
    pthread_mutex_unlock(&report.lock);
}

void report_call(const char *name)
{
    in_call = name;
}

void report_late(enum report_late what)
{
    pthread_mutex_lock(&report.lock);
    report.late[what]++;
    if (what == LATE_BY_MPI)
        count(report.opened_for, in_call);
    pthread_mutex_unlock(&report.lock);
}

void report_file(const char *path, const char *what)
{
    pthread_mutex_lock(&report.lock);
    if (!report.file[0])
        snprintf(report.file, sizeof report.file, "%.300s: %.1000s", path, what);
    pthread_mutex_unlock(&report.lock);
}

static void print_tallies(const struct tally tallies[MOST], const char *words)
{
    for (int i = 0; i < MOST && tallies[i].what; i++)
        fprintf(stderr, "brigade mpiio: rank 0: %llu %s %s\n", (unsigned long long)tallies[i].n,
                words, tallies[i].what);
}

void report_print(int rank)
{
    static const char *const names[] = {"reads", "writes"};
    if (rank || !is_verbose())
        return;
    for (int i = 0; i < 2; i++)
        fprintf(stderr, "brigade mpiio: rank 0: %s: %llu calls taken over, %llu bytes, %s s\n",
                names[i], (unsigned long long)report.done[i].calls,
                (unsigned long long)report.done[i].bytes,
                decimal_seconds(report.done[i].ns, 6).text);
    print_tallies(report.passed, "calls left to MPI:");
    if (report.late[LATE_OPENED])
        fprintf(stderr, "brigade mpiio: rank 0: %llu files opened without MPI, %llu by it later\n",
                (unsigned long long)report.late[LATE_OPENED],
                (unsigned long long)report.late[LATE_BY_MPI]);
    print_tallies(report.opened_for, "of these for");
    if (report.late[LATE_FOR_HINTS])
        fprintf(stderr, "brigade mpiio: rank 0: %llu files opened by MPI to know its hints\n",
                (unsigned long long)report.late[LATE_FOR_HINTS]);
    if (report.file[0])
        fprintf(stderr, "brigade mpiio: rank 0: left to MPI: %s\n", report.file);
    if (report.failure[0])
        fprintf(stderr, "brigade mpiio: rank 0: the first failure: %s\n", report.failure);
}
