/* Asking for a rank. See begin.h. */
#include "fork/begin.h"
#include "fork/request.h"
#include "fork/stand.h"
#include "image/index.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    PATIENCE_S = 120,      /* for a template to warm up; BRIGADE_FORK_PATIENCE says otherwise */
    SEEN_OFF_STEPS = 1000, /* of 2 ms */
    FIRST_FREE = 3
};

/* What is needed to ask, and to be as before if the answer is no. */
struct asking {
    const struct fork_job *job;
    int folder, socket, line; /* line: to the rank */
    int signals, noticed;     /* signalfds: of all, and of those that this process would not miss */
    pid_t template;           /* 0: another process has started it */
    sigset_t mask;
    struct fork_self self;
    struct fork_open open;
    char name[64]; /* of the template's socket in the folder */
};

/* Templates are for one command in one folder; where it is searched for, that is part of it. */
static void name_socket(struct asking *a)
{
    uint64_t h = BRG_HASH_SEED;
    struct stat here = {0};
    const char *places = strchr(*a->job->program, '/') ? NULL : getenv("PATH");
    for (char *const *word = a->job->program; *word; word++)
        h = brg_hash(*word, strlen(*word) + 1, h);
    if (places)
        h = brg_hash(places, strlen(places), h);
    if (stat(".", &here) == 0) {
        uint64_t place[] = {here.st_dev, here.st_ino};
        h = brg_hash((const char *)place, sizeof place, h);
    }
    snprintf(a->name, sizeof a->name, "fork-%016llx", (unsigned long long)h);
}

static struct sockaddr_un address(const struct asking *a)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    snprintf(to.sun_path, sizeof to.sun_path, "/proc/self/fd/%d/%s", a->folder, a->name);
    return to;
}

/* A socket connected with a template of the same user, or -errno. */
static int connect_template(const struct asking *a)
{
    struct sockaddr_un to = address(a);
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (s < 0)
        return -errno;
    int err = connect(s, (struct sockaddr *)&to, sizeof to) == 0 ? 0 : -errno;
    if (err == 0 && getsockopt(s, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
        err = -errno;
    if (err == 0 && peer.uid != geteuid())
        err = -EPERM;
    if (err == 0)
        return s;
    close(s);
    return err;
}

static int patience_ms(void)
{
    const char *text = getenv("BRIGADE_FORK_PATIENCE");
    double seconds = text ? strtod(text, NULL) : 0;
    return (int)((seconds > 0 && seconds < 1e6 ? seconds : PATIENCE_S) * 1000);
}

/* In the child that becomes the template: of what this process has open it keeps 0 to 2, which the
 * program's streams are made for, and the socket. */
static void become_template(const struct asking *a, int listener)
{
    char text[32];
    sigset_t hurry;
    setpgid(0, 0);
    sigemptyset(&hurry);
    sigaddset(&hurry, SIGALRM);
    sigprocmask(SIG_UNBLOCK, &hurry, NULL);
    alarm((unsigned)(patience_ms() / 1000) * 2 + 2); /* nobody waits longer for it to warm up */
    for (uint32_t i = 0; i < a->open.n; i++)
        if (a->open.numbers[i] >= FIRST_FREE)
            close(a->open.numbers[i]);
    snprintf(text, sizeof text, "%d:%d:%d", listener, (int)getpid(), a->job->n_local);
    if (fcntl(listener, F_SETFD, 0) == 0 && setenv(BRG_FORK_VARIABLE, a->job->kind, 1) == 0 &&
        setenv(BRG_FORK_SOCKET_VARIABLE, text, 1) == 0 &&
        (!a->job->pins || setenv(BRG_FORK_PINS_VARIABLE, a->job->pins, 1) == 0))
        a->job->execute(a->job->context);
    _exit(127);
}

/* 0, or -errno. */
static int start_template(struct asking *a)
{
    struct sockaddr_un at = address(a);
    int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (s < 0)
        return -errno;
    int err =
        bind(s, (struct sockaddr *)&at, sizeof at) == 0 && listen(s, SOMAXCONN) == 0 ? 0 : -errno;
    if (err == 0) {
        pid_t child = fork();
        if (child == 0)
            become_template(a, s);
        err = child < 0 ? -errno : 0;
        a->template = child;
    }
    close(s);
    return err;
}

/* Why no template is started for this command, or NULL. */
static const char *another_came_first(const struct asking *a)
{
    char first[sizeof a->name] = "";
    if (!a->job->only_one || symlinkat(a->name, a->folder, "fork-first") == 0)
        return NULL;
    ssize_t n = readlinkat(a->folder, "fork-first", first, sizeof first - 1);
    return n > 0 && strcmp(first, a->name) == 0 ? NULL : "its command line is not the node's first";
}

/* The first rank process of a command starts its template; if that is gone, nobody starts another.
 * A connected socket, or -errno; -EINVAL with *doubt: the program may not be one. */
static int reach_template(struct asking *a, const char **doubt)
{
    int s = connect_template(a);
    if (s != -ENOENT && s != -ECONNREFUSED) /* or there is a name, and nobody listens yet */
        return s;
    int lock = openat(a->folder, "fork.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock < 0)
        return -errno;
    int err = flock(lock, LOCK_EX) == 0 ? 0 : -errno;
    struct stat there;
    if (err == 0 && fstatat(a->folder, a->name, &there, AT_SYMLINK_NOFOLLOW) != 0) {
        *doubt = another_came_first(a);
        *doubt = *doubt ? *doubt : a->job->doubt(a->job->context);
        err = *doubt ? -EINVAL : start_template(a);
    }
    close(lock);
    return err ? err : connect_template(a);
}

/* Waits for what the template says, or the rank. NULL, or why there is nothing. */
static const char *hear(struct asking *a, struct fork_message *m)
{
    int passed[FORK_PASSED];
    struct pollfd from[] = {{a->line, POLLIN, 0}, {a->socket, POLLIN, 0}, {a->noticed, POLLIN, 0}};
    int n;
    do
        n = poll(from, 3, patience_ms());
    while (n < 0 && errno == EINTR);
    if (n == 0) { /* it has what this process has open, and nobody has more patience */
        if (a->template > 0)
            kill(a->template, SIGKILL);
        return "the template took too long";
    }
    if (!from[0].revents && !from[1].revents)
        return "a signal came first";
    if (from[0].revents && fork_receive(a->line, m, passed, 1) == 1)
        return NULL;
    return fork_receive(a->socket, m, passed, 1) == 1 ? NULL : "the template ended";
}

/* Waits for `kind`. NULL, or why it did not come. */
static const char *await(struct asking *a, enum fork_kind kind, struct fork_message *m)
{
    const char *why = hear(a, m);
    if (why || m->kind == kind)
        return why;
    return m->kind == FORK_REFUSED ? m->text : "the template said something else";
}

static const char *ask(struct asking *a, struct fork_message *m)
{
    struct timeval limit = {patience_ms() / 1000 + 1, 0};
    const char *why = NULL;
    a->socket = reach_template(a, &why);
    if (a->socket < 0)
        return why ? why : "the template cannot be reached";
    setsockopt(a->socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    why = await(a, FORK_TURN, m);
    if (why)
        return why;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return "no socket could be made";
    a->line = ends[0];
    int err = fork_ask(a->socket, ends[1], &a->self, &a->open, environ);
    close(ends[1]);
    return err ? "the template cannot be asked" : await(a, FORK_STARTED, m);
}

/* Signals wait from here on: they are for the rank, or for this process as it was. */
static const char *prepare(struct asking *a)
{
    sigset_t all, noticed;
    if (self_read(&a->self) != 0 || fork_list_open(&a->open) != 0)
        return "/proc cannot be read";
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &a->mask);
    a->signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    noticed = all;
    for (int number = 1; number < NSIG; number++)
        if (standing_unnoticed(number) || sigismember(&a->mask, number) == 1)
            sigdelset(&noticed, number);
    a->noticed = signalfd(-1, &noticed, SFD_CLOEXEC | SFD_NONBLOCK);
    a->folder = open(a->job->folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    name_socket(a);
    return a->signals < 0 || a->noticed < 0 || a->folder < 0 ? "the job's folder cannot be opened"
                                                             : NULL;
}

/* The program that this process becomes would see a child that it did not start. A template that
 * forks no rank ends when all of the node have asked. */
static void see_off(pid_t template)
{
    struct timespec step = {0, 2000000};
    for (int i = 0; template > 0 && i < SEEN_OFF_STEPS; i++) {
        if (waitpid(template, NULL, WNOHANG) != 0)
            return;
        nanosleep(&step, NULL);
    }
}

static void as_before(struct asking *a)
{
    int opened[] = {a->folder, a->socket, a->line, a->signals, a->noticed};
    for (size_t i = 0; i < sizeof opened / sizeof *opened; i++)
        if (opened[i] >= 0)
            close(opened[i]);
    free(a->open.numbers);
    sigprocmask(SIG_SETMASK, &a->mask, NULL);
}

const char *fork_stand_in(const struct fork_job *job)
{
    static char why[FORK_TEXT];
    struct fork_message m = {0};
    struct asking a = {
        .job = job, .folder = -1, .socket = -1, .line = -1, .signals = -1, .noticed = -1};
    struct standing standing;
    if (job->n_local == 1)
        return NULL;
    const char *reason = prepare(&a);
    if (!reason && standing_begin(&standing, a.signals) != 0)
        reason = "no process could be started beside it";
    if (reason) {
        as_before(&a);
        return reason;
    }
    reason = ask(&a, &m);
    standing.template = a.template;
    standing.rank = m.value;
    standing.joined = m.other;
    if (!reason)
        standing_until_the_end(&standing, a.socket, a.line, &a.open);
    snprintf(why, sizeof why, "%s", reason);
    standing_undo(&standing);
    see_off(a.template);
    as_before(&a);
    return why;
}
