/* See report.h. */
#include "mpiio/report.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_REASONS 16
#define MOST_CALLS 32 /* that MPI opened a file for; further ones count as the last */

static _Thread_local const char *in_call = "?";

static struct {
    pthread_mutex_t lock;
    struct {
        uint64_t calls, bytes, ns;
    } done[2]; /* reads, writes */
    struct {
        const char *why;
        uint64_t calls;
    } passed[MOST_REASONS];
    uint64_t late[LATE_FOR_HINTS + 1];
    struct {
        const char *call;
        uint64_t files;
    } opened_for[MOST_CALLS];
    char file[1400]; /* the first word about a file */
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

void report_passed(const char *why)
{
    pthread_mutex_lock(&report.lock);
    int i = 0;
    while (i < MOST_REASONS - 1 && report.passed[i].why && strcmp(report.passed[i].why, why))
        i++;
    if (!report.passed[i].why)
        report.passed[i].why = why;
    report.passed[i].calls++;
    pthread_mutex_unlock(&report.lock);
}

void report_done(int write, uint64_t bytes, uint64_t ns, const char *failure)
{
    pthread_mutex_lock(&report.lock);
    report.done[write].calls++;
    report.done[write].bytes += bytes;
    report.done[write].ns += ns;
    if (failure && !report.failure[0])
        snprintf(report.failure, sizeof report.failure, "%s", failure);
    pthread_mutex_unlock(&report.lock);
}

void report_call(const char *name)
{
    in_call = name;
}

static void count_call(const char *name)
{
    int i = 0;
    while (i < MOST_CALLS - 1 && report.opened_for[i].call &&
           strcmp(report.opened_for[i].call, name) != 0)
        i++;
    if (!report.opened_for[i].call)
        report.opened_for[i].call = name;
    report.opened_for[i].files++;
}

void report_late(enum report_late what)
{
    pthread_mutex_lock(&report.lock);
    report.late[what]++;
    if (what == LATE_BY_MPI)
        count_call(in_call);
    pthread_mutex_unlock(&report.lock);
}

void report_file(const char *path, const char *what)
{
    pthread_mutex_lock(&report.lock);
    if (!report.file[0])
        snprintf(report.file, sizeof report.file, "%.300s: %.1000s", path, what);
    pthread_mutex_unlock(&report.lock);
}

void report_print(int rank)
{
    static const char *const names[] = {"reads", "writes"};
    if (rank || !is_set_to("verbose"))
        return;
    for (int i = 0; i < 2; i++)
        fprintf(stderr, "brigade mpiio: rank 0: %s: %llu calls taken over, %llu bytes, %.6f s\n",
                names[i], (unsigned long long)report.done[i].calls,
                (unsigned long long)report.done[i].bytes, (double)report.done[i].ns / 1e9);
    for (int i = 0; i < MOST_REASONS && report.passed[i].why; i++)
        fprintf(stderr, "brigade mpiio: rank 0: %llu calls left to MPI: %s\n",
                (unsigned long long)report.passed[i].calls, report.passed[i].why);
    if (report.late[LATE_OPENED])
        fprintf(stderr, "brigade mpiio: rank 0: %llu files opened without MPI, %llu by it later\n",
                (unsigned long long)report.late[LATE_OPENED],
                (unsigned long long)report.late[LATE_BY_MPI]);
    for (int i = 0; i < MOST_CALLS && report.opened_for[i].call; i++)
        fprintf(stderr, "brigade mpiio: rank 0: %llu of these for %s\n",
                (unsigned long long)report.opened_for[i].files, report.opened_for[i].call);
    if (report.late[LATE_FOR_HINTS])
        fprintf(stderr, "brigade mpiio: rank 0: %llu files opened by MPI to know its hints\n",
                (unsigned long long)report.late[LATE_FOR_HINTS]);
    if (report.file[0])
        fprintf(stderr, "brigade mpiio: rank 0: left to MPI: %s\n", report.file);
    if (report.failure[0])
        fprintf(stderr, "brigade mpiio: rank 0: the first failure: %s\n", report.failure);
}
