/* A template: asked, forking, standing behind its ranks. See template.h. */
#include "fork/template.h"
#include "base/sys.h"
#include "base/text.h"
#include "fork/adopt.h"
#include "fork/clients.h"
#include "fork/incoming.h"
#include "fork/opened.h"
#include "fork/own.h"
#include "fork/saved.h"
#include "fork/twins.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    LINGER_MS = 2000, /* for rank processes that are late, once no rank is left */
    ALONE_MS = 60000, /* for the first one */
    TURN_MS = 1000,   /* for a request to begin: who is stopped keeps nobody waiting for long */
    MEASURE_MS = 1000 /* from a fork to a look at the memory of all */
};

static struct {
    int listener, ends;    /* a signalfd for children that end */
    int pid;               /* of the template, or of a twin in that twin */
    uint64_t child_end[4]; /* what SIGCHLD did before it served, as the kernel has it */
    int expected;          /* rank processes that will come; 0: not known */
    struct fork_self self; /* as it was started */
    char refusal[FORK_TEXT];
    uint64_t *saved;    /* where to tell it; NULL: nowhere, or it has been told */
    int to_be_measured; /* ranks were forked since */
    /* the request that is being served */
    struct client *turn; /* who was last told to ask */
    uint64_t told_ns;    /* when */
    struct client *asking;
    struct incoming in;
    struct clients clients;
    struct twins twins;
} t = {.listener = -1, .ends = -1, .in = INCOMING_NONE, .twins = {.all = -1}};

int template_begin(const char *socket)
{
    char *end;
    if (!socket)
        return 0;
    long listener = strtol(socket, &end, 10);
    if (*end != ':' || strtol(end + 1, &end, 10) != sys_getpid() || self_read(&t.self) != 0)
        return 0;
    t.expected = *end == ':' ? (int)strtol(end + 1, NULL, 10) : 0;
    t.listener = (int)listener;
    t.pid = sys_getpid();
    return 1;
}

int template_is(void)
{
    return t.listener >= 0;
}

size_t template_again(char *buf, size_t size)
{
    struct text value = text_in(buf, size);
    text_number(&value, (uint64_t)t.listener, 10);
    text_add(&value, ":");
    text_number(&value, (uint64_t)t.pid, 10);
    text_add(&value, ":");
    text_number(&value, (uint64_t)t.expected, 10);
    if (t.listener < 0 || value.full)
        return 0;
    opened_close_at_exec();
    if (sys_fcntl(t.listener, F_SETFD, 0) != 0)
        return 0;
    own_as_started(t.self.ignored);
    return self_restore(&t.self) == 0 ? value.len : 0; /* an exec would keep what an import set */
}

const char *template_changed(void)
{
    return self_changed(&t.self);
}

int template_left_open(char *words, size_t size)
{
    return opened_besides(t.listener, words, size);
}

void template_tell_saved(uint64_t *bytes)
{
    t.saved = bytes;
}

void template_refuse_all(const char *why)
{
    struct fork_message m = fork_message(FORK_REFUSED, 0, 0, why);
    memcpy(t.refusal, m.text, sizeof t.refusal);
}

/* ---- before the first request ---- */

static void start_serving(void)
{
    sigset_t children, hurry;
    char why[FORK_TEXT];
    sigemptyset(&hurry);
    sigaddset(&hurry, SIGALRM);
    sigprocmask(SIG_BLOCK, &hurry, NULL);
    alarm(0); /* of become_template() in begin.c */
    adopt_widen();
    if (opened_besides(t.listener, why, sizeof why))
        template_refuse_all(why);
    opened_let_go();
    sys_fcntl(t.listener, F_SETFD, FD_CLOEXEC); /* until now it may have executed itself again */
    /* The program may have been started with SIGCHLD ignored: then children end unseen. */
    const uint64_t seen[4] = {(uintptr_t)SIG_DFL};
    sys_call(SYS_rt_sigaction, SIGCHLD, (long)seen, (long)t.child_end, sizeof(uint64_t), 0, 0);
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    t.ends = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
}

uint32_t template_twins(void)
{
    if (t.ends < 0)
        start_serving();
    uint32_t wanted = t.refusal[0] ? 0 : twins_wanted(t.expected, t.self.n_processors);
    return wanted && twins_begin(&t.twins) == 0 ? wanted : 0;
}

void template_twin_forked(void)
{
    twins_add(&t.twins);
}

void template_become_twin(void)
{
    sys_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0, 0);
    if (sys_getppid() != t.pid)
        sys_exit(0);
    t.pid = sys_getpid();
    twins_become(&t.twins);
}

/* ---- a request ---- */

static void let_go(void)
{
    incoming_close_passed(&t.in);
    incoming_forget(&t.in);
    t.asking = NULL;
}

void template_refuse(const char *why)
{
    struct fork_message m = fork_message(FORK_REFUSED, 0, 0, why);
    if (t.asking) {
        fork_send(t.asking->socket, &m, NULL);
        clients_close(&t.clients, t.asking);
    }
    let_go();
}

/* The first message of a rank process. Whether its rank is to be forked. */
static int take_request(struct client *one)
{
    struct fork_message m;
    int passed[FORK_PASSED];
    int got = fork_receive(one->socket, &m, passed, 0);
    if (got == -EAGAIN)
        return 0;
    if (got != 1 || m.kind != FORK_REQUEST || m.n_passed != 2) {
        for (uint32_t i = 0; got == 1 && i < m.n_passed; i++)
            sys_close(passed[i]);
        clients_close(&t.clients, one);
        return 0;
    }
    t.asking = one;
    int err = incoming_take(&t.in, one->socket, passed[0], passed[1]);
    const char *why = err            ? "the request did not arrive whole"
                      : t.refusal[0] ? t.refusal
                                     : self_differs(&t.self, &t.in.request.head->self);
    if (!why)
        return 1;
    template_refuse(why);
    return 0;
}

/* ---- waiting ---- */

static int is_awaited(const struct client *one)
{
    return one && one->socket >= 0 && one->turn && !one->pid;
}

/* Whom one takes that has twins, they do not serve: not before the last one's request has come, or
 * is long in coming. */
static int may_accept(void)
{
    return !t.twins.shared || !is_awaited(t.turn);
}

/* All that wait; or, with twins, the next one. */
static void accept_some(void)
{
    for (int more = may_accept(); more; more = !t.twins.shared) {
        struct ucred peer = {0};
        socklen_t size = sizeof peer;
        int s = (int)sys_call(SYS_accept4, t.listener, 0, 0, SOCK_CLOEXEC, 0, 0);
        if (s < 0)
            return;
        twins_saw(&t.twins, t.expected);
        int ours = getsockopt(s, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
                   peer.uid == (uint32_t)sys_call(SYS_geteuid, 0, 0, 0, 0, 0, 0);
        if (!ours || !clients_add(&t.clients, s, peer.pid))
            sys_close(s);
    }
}

/* Has the next one send its request, or refuses it, unless another one's is awaited. */
static void give_turn(void)
{
    if (is_awaited(t.turn) && sys_now_ns(CLOCK_MONOTONIC) - t.told_ns < TURN_MS * UINT64_C(1000000))
        return;
    t.turn = NULL;
    for (uint32_t i = 0; i < t.clients.n && !t.turn; i++) {
        struct client *one = &t.clients.all[i];
        if (one->socket < 0 || one->turn)
            continue;
        struct fork_message m =
            fork_message(t.refusal[0] ? FORK_REFUSED : FORK_TURN, 0, 0, t.refusal);
        int err = fork_send(one->socket, &m, NULL);
        one->turn = 1;
        if (err || t.refusal[0])
            clients_close(&t.clients, one);
        else
            t.turn = one;
    }
    t.told_ns = sys_now_ns(CLOCK_MONOTONIC);
}

static int all_have_come(void)
{
    return t.expected > 0 && twins_seen(&t.twins) >= (uint32_t)t.expected;
}

static uint32_t watch(int idle)
{
    struct clients *c = &t.clients;
    c->polled[0] = (struct pollfd){may_accept() ? t.listener : -1, POLLIN, 0};
    c->polled[1] = (struct pollfd){t.ends, POLLIN, 0};
    c->polled[2] = (struct pollfd){idle && !all_have_come() ? t.twins.all : -1, POLLIN, 0};
    for (uint32_t i = 0; i < c->n; i++)
        c->polled[i + CLIENTS_BEFORE] = (struct pollfd){c->all[i].socket, POLLIN, 0};
    return c->n + CLIENTS_BEFORE;
}

/* Whether a request was taken up. The others wait: what they said is still there. */
static int hear_all(uint32_t n)
{
    struct clients *c = &t.clients;
    for (uint32_t i = CLIENTS_BEFORE; i < n; i++) {
        struct client *one = &c->all[i - CLIENTS_BEFORE];
        if (!c->polled[i].revents || one->socket < 0)
            continue;
        if (one->pid)
            clients_hear(c, one);
        else if (take_request(one))
            return 1;
    }
    return 0;
}

static void measure(void)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < t.clients.n; i++)
        bytes += t.clients.all[i].pid ? saved_by(t.clients.all[i].pid) : 0;
    if (bytes && t.saved)
        *t.saved = twins_saved(&t.twins, bytes);
    t.to_be_measured = 0;
}

/* How long to wait for something, in milliseconds; -1: until there is something. */
static int patience(int idle)
{
    if (!idle && is_awaited(t.turn))
        return TURN_MS;
    if (!idle)
        return t.saved && t.to_be_measured ? MEASURE_MS : -1;
    if (all_have_come())
        return 0;
    return twins_seen(&t.twins) ? LINGER_MS : ALONE_MS;
}

int template_wait(struct template_request *request)
{
    struct signalfd_siginfo end;
    if (t.ends < 0)
        start_serving();
    sys_fcntl(t.listener, F_SETFL, O_NONBLOCK);
    for (;;) {
        give_turn();
        int idle = t.clients.alive == 0 && t.clients.open == 0 && t.twins.alive == 0;
        uint32_t n = watch(idle);
        int ready = poll(t.clients.polled, n, patience(idle));
        if (ready == 0 && idle)
            return 0;
        if (ready == 0 && !is_awaited(t.turn))
            measure();
        while (sys_read(t.ends, &end, sizeof end) == sizeof end)
            ;
        t.twins.alive -= clients_reap(&t.clients, all_have_come());
        if (ready > 0 && hear_all(n)) {
            *request = t.in.request;
            return 1;
        }
        accept_some();
    }
}

/* ---- the fork ---- */

void template_forked(int pid)
{
    if (pid < 0) {
        template_refuse("no process could be forked");
        return;
    }
    t.asking->pid = pid;
    t.clients.alive++;
    t.to_be_measured = 1;
    let_go();
}

static _Noreturn void give_up(int line, const char *what)
{
    struct fork_message m = fork_message(FORK_REFUSED, 0, 0, NULL);
    struct text words = text_in(m.text, sizeof m.text);
    text_add(&words, "the rank could not take over ");
    text_add(&words, what);
    fork_send(line, &m, NULL);
    sys_exit(0);
    __builtin_unreachable();
}

void template_child(void)
{
    struct template_request *r = &t.in.request;
    const struct fork_request *head = r->head;
    const char *what = "";
    int line = t.in.line, joined = 0;
    sys_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0, 0);
    if (sys_getppid() != t.pid)
        sys_exit(0);
    sys_call(SYS_rt_sigaction, SIGCHLD, (long)t.child_end, 0, sizeof(uint64_t), 0, 0);
    for (uint32_t i = 0; i < t.clients.n; i++)
        if (t.clients.all[i].socket >= 0)
            sys_close(t.clients.all[i].socket);
    sys_close(t.listener);
    sys_close(t.ends);
    if (t.twins.all >= 0)
        sys_close(t.twins.all);
    sys_close(r->file);
    if (adopt_descriptors(t.in.passed,
                          (const int32_t *)((const char *)head + head->descriptors_off),
                          head->n_descriptors, &line) != 0)
        give_up(line, "its descriptors");
    if (self_become(&t.self, &head->self, &joined, &what) != 0)
        give_up(line, what);
    char *environment =
        adopt_environment(r->environment, head->environment_bytes, head->n_variables);
    if (!environment)
        give_up(line, "its environment");
    adopt_names(environment, head->environment_bytes);
    struct fork_message m = fork_message(FORK_STARTED, sys_getpid(), joined, NULL);
    if (fork_send(line, &m, NULL) != 0)
        sys_exit(0); /* the rank process is gone */
    t.in.line = line;
    t.listener = t.ends = -1;
    t.asking = NULL;
}

void template_begin_rank(void)
{
    struct fork_message go;
    int passed[FORK_PASSED];
    uint64_t pending = 0;
    if (fork_receive(t.in.line, &go, passed, 1) != 1 || go.kind != FORK_GO)
        sys_exit(0);
    sys_close(t.in.line);
    t.in.line = -1;
    sys_call(SYS_rt_sigpending, (long)&pending, sizeof pending, 0, 0, 0, 0);
    for (int number = 1; number < 65; number++)
        if ((go.signals & ~pending) >> (number - 1) & 1)
            sys_call(SYS_kill, sys_getpid(), number, 0, 0, 0, 0);
    self_unblock(&t.in.request.head->self);
}
