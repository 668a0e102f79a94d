/* See keeper.h. */
#include "stage/keeper.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "stage/commands.h"
#include "stage/dead.h"
#include "base/json.h"

/* Launchers end all processes when one has ended badly: first the others are told to give up, and
 * take away what is theirs. */
#define LINGER_S 3u
#define UNDO_S 1u
#define SIGNALLED 128

static long first_number(const char *const *names, long otherwise)
{
    for (; *names; names++) {
        const char *value = getenv(*names);
        if (value && *value)
            return atol(value);
    }
    return otherwise;
}

uint32_t keeper_rank(void)
{
    static const char *const names[] = {"PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK",
                                        "SLURM_PROCID", NULL};
    return (uint32_t)first_number(names, 0);
}

long keeper_size(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS",
                                        NULL};
    return first_number(names, 0);
}

/* Never waits for who reads it. */
static void pulse(const char *end)
{
    char host[65] = "", line[160];
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
    gethostname(host, sizeof host - 1);
    int n = snprintf(line, sizeof line, "pulse %" PRIu32 " %ld %s%s\n", keeper_rank(),
                     keeper_size(), host, end);
    if (poll(&out, 1, 0) == 1 && (out.revents & POLLOUT) &&
        write(STDERR_FILENO, line, (size_t)n) < 0)
        return; /* nobody looks */
}

static void explain(int signum)
{
    struct json j = {0};
    char host[65] = "", reason[80];
    gethostname(host, sizeof host - 1);
    int n = snprintf(reason, sizeof reason, "the staging process was ended by signal %d", signum);
    json_add(&j, "{\"ok\":false,\"reason\":");
    json_add_string(&j, reason, (size_t)n);
    json_add(&j, ",\"host\":");
    json_add_string(&j, host, strlen(host));
    json_add(&j, ",\"needed\":null,\"free\":null,\"damaged\":false,\"killed\":true}");
    json_print(&j, STDOUT_FILENO);
}

static time_t now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

/* Waits for a signal, a second at most; then shows a pulse if it is time. */
static int hear(const struct keeper *k, const sigset_t *heard)
{
    static time_t last;
    struct timespec second = {.tv_sec = 1};
    int signum = sigtimedwait(heard, NULL, &second);
    if (now_s() - last >= (time_t)k->pulse_s) {
        last = now_s();
        pulse("");
    }
    return signum;
}

/* Until the worker has ended; returns its wait status. */
static int watch(const struct keeper *k, const sigset_t *heard, pid_t worker, int *told)
{
    int status = 0;
    for (;;) {
        int signum = hear(k, heard);
        if (waitpid(worker, &status, WNOHANG) == worker)
            return status;
        if (signum > 0 && signum != SIGCHLD) {
            *told = signum;
            kill(worker, signum);
        }
    }
}

static int bury(const struct keeper *k, const sigset_t *heard, int signum, int told)
{
    if (k->job)
        dead_forget(k->base, k->job);
    if (k->explains)
        explain(signum);
    time_t until = now_s() + (told ? UNDO_S : LINGER_S);
    while (k->explains && now_s() < until) {
        int more = hear(k, heard);
        if (more > 0 && more != SIGCHLD && !told) {
            told = more;
            until = now_s() + UNDO_S + 1;
        }
    }
    return k->explains ? EXIT_NOT_STAGED : SIGNALLED + signum;
}

int keeper_run(const struct keeper *k, int (*work)(void *), void *context)
{
    sigset_t heard, before;
    int told = 0;
    sigemptyset(&heard);
    sigaddset(&heard, SIGCHLD);
    sigaddset(&heard, SIGINT);
    sigaddset(&heard, SIGTERM);
    sigaddset(&heard, SIGHUP);
    sigaddset(&heard, SIGUSR1);
    sigprocmask(SIG_BLOCK, &heard, &before);
    pid_t keeper = getpid(), worker = fork();
    if (worker <= 0) { /* without a keeper, if there can be none */
        if (worker == 0)
            prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (worker == 0 && getppid() != keeper)
            raise(SIGTERM);
        sigprocmask(SIG_SETMASK, &before, NULL);
        return work(context);
    }
    signal(SIGPIPE, SIG_IGN);
    pulse("");
    int status = watch(k, &heard, worker, &told);
    int code = WIFSIGNALED(status) ? bury(k, &heard, WTERMSIG(status), told) : WEXITSTATUS(status);
    pulse(" end");
    return code;
}
