/* Rank processes and ranks, as their template sees them. See clients.h. */
#include "fork/clients.h"
#include "base/sys.h"
#include "fork/talk.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

struct client *clients_add(struct clients *c, int socket, int peer)
{
    struct client *one = NULL;
    for (uint32_t i = 0; i < c->n && !one; i++)
        if (c->all[i].socket < 0 && c->all[i].pid == 0)
            one = &c->all[i];
    if (!one && c->n < CLIENTS)
        one = &c->all[c->n++];
    if (one) {
        *one = (struct client){socket, peer, 0, 0};
        c->open++;
    }
    return one;
}

void clients_close(struct clients *c, struct client *one)
{
    if (one->socket < 0)
        return;
    sys_close(one->socket);
    one->socket = -1;
    c->open--;
}

static struct client *find(struct clients *c, int pid)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (c->all[i].pid == pid)
            return &c->all[i];
    return NULL;
}

/* One that is stopped goes on with its rank, or, as any stopped process, ends by SIGKILL. The
 * message is there before it does: see stop_as_rank() in stand.c. SIGSTOP cannot be held back by
 * whom it stops: it comes from here, so that the SIGCONT that belongs to it comes after it. */
static void tell(const struct client *one, const struct fork_message *m)
{
    if (one->socket < 0)
        return;
    if (m->kind == FORK_STOPPED && m->value == SIGSTOP) {
        sys_call(SYS_kill, one->peer, SIGSTOP, 0, 0, 0, 0);
        return;
    }
    fork_send(one->socket, m, NULL);
    if (m->kind == FORK_CONTINUED || (m->kind == FORK_ENDED && m->value == SIGKILL))
        fork_wake(one->peer);
}

uint32_t clients_reap(struct clients *c, int complete)
{
    uint32_t others = 0;
    int status;
    for (;;) {
        int pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED);
        if (pid <= 0)
            return others;
        struct client *one = find(c, pid);
        int stopped = WIFSTOPPED(status), goes_on = WIFCONTINUED(status);
        others += !one && !stopped && !goes_on;
        if (!one)
            continue;
        struct fork_message m = stopped   ? fork_message(FORK_STOPPED, WSTOPSIG(status), 0, NULL)
                                : goes_on ? fork_message(FORK_CONTINUED, 0, 0, NULL)
                                          : fork_message(FORK_ENDED, status, complete, NULL);
        tell(one, &m);
        if (stopped || goes_on)
            continue;
        clients_close(c, one);
        one->pid = 0;
        c->alive--;
    }
}

void clients_hear(struct clients *c, struct client *one)
{
    struct fork_message m;
    int passed[FORK_PASSED];
    int got = fork_receive(one->socket, &m, passed, 0);
    if (got == -EAGAIN)
        return;
    if (got != 1 || m.kind == FORK_ALONE) { /* killed, or it starts the program itself */
        clients_close(c, one);
        if (got != 1) /* with all of its group: so is that of a rank that leads one */
            kill(-one->pid, SIGKILL);
        kill(one->pid, SIGKILL);
        return;
    }
    for (uint32_t i = 0; i < m.n_passed; i++)
        sys_close(passed[i]);
    if (m.kind == FORK_SIGNAL && m.value > 0)
        kill(m.other && getpgid(one->pid) == one->pid ? -one->pid : one->pid, m.value);
}
