/* Messages with descriptors. See talk.h. */
#include "fork/talk.h"
#include "base/sys.h"
#include "base/text.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>

struct fork_message fork_message(enum fork_kind kind, int32_t value, int32_t other,
                                 const char *text)
{
    struct fork_message m = {.kind = kind, .value = value, .other = other};
    for (size_t i = 0; text && text[i] && i + 1 < sizeof m.text; i++)
        m.text[i] = text[i];
    return m;
}

/* Room for the descriptors of a message, aligned as the kernel wants it. */
union control {
    struct cmsghdr head;
    char room[CMSG_SPACE(FORK_PASSED * sizeof(int))];
};

enum {
    ON_THEIR_WAY_MS = 4000, /* the template waits a little longer for what follows */
    STEP_MS = 2
};

int fork_send(int to, const struct fork_message *m, const int *passed)
{
    union control control;
    struct iovec bytes = {(void *)m, sizeof *m};
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
    size_t size = m->n_passed * sizeof(int);
    if (m->n_passed > FORK_PASSED)
        return -EINVAL;
    if (m->n_passed > 0) {
        memset(&control, 0, sizeof control);
        control.head.cmsg_level = SOL_SOCKET;
        control.head.cmsg_type = SCM_RIGHTS;
        control.head.cmsg_len = CMSG_LEN(size);
        memcpy(CMSG_DATA(&control.head), passed, size);
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(size);
    }
    for (int waited_ms = 0;;) {
        struct timespec step = {0, STEP_MS * 1000000L};
        long n = sys_call(SYS_sendmsg, to, (long)&message, MSG_NOSIGNAL, 0, 0, 0);
        if (n == -ETOOMANYREFS && waited_ms < ON_THEIR_WAY_MS) {
            sys_call(SYS_nanosleep, (long)&step, 0, 0, 0, 0, 0);
            waited_ms += STEP_MS;
        } else if (n != -EINTR) {
            return n < 0 ? (int)n : 0;
        }
    }
}

void fork_wake(int pid)
{
    siginfo_t info = {.si_code = SI_QUEUE};
    info.si_pid = sys_getpid();
    info.si_value.sival_int = (int)(uint32_t)FORK_MAGIC;
    sys_call(SYS_rt_sigqueueinfo, pid, SIGCONT, (long)&info, 0, 0, 0);
}

int fork_is_wake(const struct signalfd_siginfo *info)
{
    return info->ssi_signo == SIGCONT && info->ssi_code == SI_QUEUE &&
           info->ssi_int == (int32_t)(uint32_t)FORK_MAGIC;
}

/* Descriptors that came with a message which cannot be used. */
static void drop(const int *passed, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sys_close(passed[i]);
}

int fork_receive(int from, struct fork_message *m, int *passed, int wait)
{
    union control control;
    struct iovec bytes = {m, sizeof *m};
    struct msghdr message = {.msg_iov = &bytes,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    int flags = MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT);
    long n;
    int resets = 0; /* one, of an end that closed before it had read all; what it sent comes next */
    do
        n = sys_call(SYS_recvmsg, from, (long)&message, flags, 0, 0, 0);
    while (n == -EINTR || (n == -ECONNRESET && resets++ == 0));
    if (n <= 0)
        return (int)n;
    size_t got = 0;
    if (message.msg_controllen >= sizeof control.head && control.head.cmsg_level == SOL_SOCKET &&
        control.head.cmsg_type == SCM_RIGHTS) {
        got = (control.head.cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(passed, CMSG_DATA(&control.head), got * sizeof(int));
    }
    if (n != sizeof *m || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) || m->n_passed != got) {
        drop(passed, got);
        return -EBADMSG;
    }
    m->text[sizeof m->text - 1] = '\0';
    return 1;
}
