/* See signals.h. */
#include "buffer/signals.h"
#include "buffer/file.h"
#include "buffer/hooks.h"

#include <string.h>
#include <ucontext.h>

#define SIGNALS 65

__thread struct inside me __attribute__((tls_model("initial-exec")));

/* What the program asked for, in two copies: a handler that runs meanwhile reads a whole one. */
static struct wanted {
    struct sigaction copy[2];
    unsigned which;
} wanted[SIGNALS];
static char interrupts[SIGNALS]; /* siginterrupt(sig, 1) */
static struct lock watch_lock;
static int watching;

/* Whether it ends a program that has no handler: of those that can be caught, all others, the C
 * library's own two left out. */
static int ends_program(int sig)
{
    switch (sig) {
    case SIGKILL:
    case SIGSTOP:
    case SIGTSTP:
    case SIGTTIN:
    case SIGTTOU:
    case SIGCONT:
    case SIGCHLD:
    case SIGURG:
    case SIGWINCH:
    case 32:
    case 33: return 0;
    default: return sig > 0 && sig < SIGNALS;
    }
}

static void entry(int sig, siginfo_t *info, void *context);

static struct sigaction *wanted_of(int sig)
{
    struct wanted *w = &wanted[sig];
    return &w->copy[__atomic_load_n(&w->which, __ATOMIC_ACQUIRE) & 1];
}
static void want(int sig, const struct sigaction *act)
{
    struct wanted *w = &wanted[sig];
    unsigned next = w->which + 1;
    w->copy[next & 1] = *act;
    __atomic_store_n(&w->which, next, __ATOMIC_RELEASE);
}

static int is_own_fault(int sig, const siginfo_t *info)
{
    return info->si_code > 0 && (sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE ||
                                 sig == SIGILL || sig == SIGTRAP || sig == SIGSYS);
}

/* The kernel's mask of all that can wait: not the faults, not the C library's own two signals. */
static unsigned long deferrable(void)
{
    static const int not [] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, 32, 33};
    unsigned long mask = ~0ul;
    for (size_t i = 0; i < sizeof not / sizeof *not ; i++)
        mask &= ~(1ul << (not [i] - 1));
    return mask;
}

static void keep(const siginfo_t *info, ucontext_t *uc)
{
    unsigned long *mask = (unsigned long *)&uc->uc_sigmask;
    if (me.n_kept == 0)
        me.old_mask = *mask;
    if (me.n_kept < KEPT_MOST)
        me.kept[me.n_kept++] = *info;
    *mask |= deferrable();
}

void signals_deliver(void)
{
    int pid = sys_getpid(), tid = (int)sys_call(SYS_gettid, 0, 0, 0, 0, 0, 0), n = me.n_kept;
    unsigned long mask = me.old_mask;
    me.n_kept = 0;
    for (int i = 0; i < n; i++)
        sys_call(SYS_rt_tgsigqueueinfo, pid, tid, me.kept[i].si_signo, (long)&me.kept[i], 0, 0);
    sys_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, 8, 0, 0);
}

static void set_default(int sig)
{
    struct sigaction act = {.sa_handler = SIG_DFL};
    REAL(sigaction)(sig, &act, NULL);
}

/* The program ends of this signal: what it wrote is brought to the file first. */
static void end_by(int sig, const siginfo_t *info)
{
    if (!me.inside)
        file_drain_all(0);
    set_default(sig);
    if (is_own_fault(sig, info))
        return; /* and meets the fault again */
    unsigned long one = 1ul << (sig - 1);
    sys_call(SYS_tgkill, sys_getpid(), sys_call(SYS_gettid, 0, 0, 0, 0, 0, 0), sig, 0, 0, 0);
    sys_call(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&one, 0, 8, 0, 0);
}

static void entry(int sig, siginfo_t *info, void *context)
{
    int fault = is_own_fault(sig, info);
    if (fault && me.guarded) {
        ucontext_t *uc = context;
        me.guarded = 0;
        sys_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&uc->uc_sigmask, 0, 8, 0, 0);
        siglongjmp(me.guard, 1);
    }
    if (me.inside && !fault) {
        keep(info, context);
        return;
    }
    struct sigaction act = *wanted_of(sig);
    if (!(act.sa_flags & SA_SIGINFO) && act.sa_handler == SIG_DFL) {
        end_by(sig, info);
        return;
    }
    if (act.sa_flags & (int)SA_RESETHAND) {
        struct sigaction none = {.sa_handler = SIG_DFL};
        want(sig, &none);
        set_default(sig);
    }
    if (act.sa_flags & SA_SIGINFO)
        act.sa_sigaction(sig, info, context);
    else
        act.sa_handler(sig);
}

static int is_handler(const struct sigaction *act)
{
    return (act->sa_flags & SA_SIGINFO) ||
           (act->sa_handler != SIG_DFL && act->sa_handler != SIG_IGN);
}

/* Ours in the place of *act. */
static int install(int sig, const struct sigaction *act, struct sigaction *old)
{
    struct sigaction ours = *act;
    ours.sa_sigaction = entry;
    ours.sa_flags = (act->sa_flags | SA_SIGINFO) & ~(int)SA_RESETHAND;
    want(sig, act);
    return REAL(sigaction)(sig, &ours, old);
}

int hook_sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
    struct sigaction before, was = {.sa_handler = SIG_DFL};
    if (!buffer_active || sig <= 0 || sig >= SIGNALS || sig == 32 || sig == 33 || sig == SIGKILL ||
        sig == SIGSTOP)
        return REAL(sigaction)(sig, act, old);
    was = *wanted_of(sig);
    int rc, watched = watching && act && !is_handler(act) && act->sa_handler == SIG_DFL &&
                      ends_program(sig);
    if (!act)
        rc = REAL(sigaction)(sig, NULL, &before);
    else if (is_handler(act) || watched)
        rc = install(sig, act, &before);
    else
        rc = REAL(sigaction)(sig, act, &before);
    if (rc == 0 && old)
        *old = before.sa_sigaction == entry ? was : before;
    return rc;
}

static brigade_handler *set_handler(int sig, brigade_handler *handler, int flags)
{
    struct sigaction act = {.sa_handler = handler, .sa_flags = flags}, old;
    if (handler == SIG_ERR) {
        errno = EINVAL;
        return SIG_ERR;
    }
    sigemptyset(&act.sa_mask);
    if (!(flags & (int)SA_NODEFER) && sig > 0 && sig < SIGNALS)
        sigaddset(&act.sa_mask, sig);
    return hook_sigaction(sig, &act, &old) < 0 ? SIG_ERR : old.sa_handler;
}

brigade_handler *hook_signal(int sig, brigade_handler *handler)
{
    int interrupt = sig > 0 && sig < SIGNALS && interrupts[sig];
    return set_handler(sig, handler, interrupt ? 0 : SA_RESTART);
}

brigade_handler *hook___sysv_signal(int sig, brigade_handler *handler)
{
    return set_handler(sig, handler, (int)SA_RESETHAND | SA_NODEFER);
}

int hook_siginterrupt(int sig, int flag)
{
    if (sig > 0 && sig < SIGNALS) {
        struct sigaction act = *wanted_of(sig);
        interrupts[sig] = flag != 0;
        act.sa_flags = flag ? act.sa_flags & ~SA_RESTART : act.sa_flags | SA_RESTART;
        want(sig, &act);
    }
    return REAL(siginterrupt)(sig, flag);
}

/* A stack to run on when the thread's own has overflowed. */
static void give_stack(void)
{
    stack_t now;
    if (sigaltstack(NULL, &now) != 0 || !(now.ss_flags & SS_DISABLE))
        return;
    size_t bytes = 128 << 10;
    void *at = sys_map(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (at)
        sigaltstack(&(stack_t){.ss_sp = at, .ss_size = bytes}, NULL);
}

void signals_watch(void)
{
    if (__atomic_load_n(&watching, __ATOMIC_ACQUIRE) || !n_files || !lock_try(&watch_lock))
        return;
    struct sigaction now, act = {.sa_handler = SIG_DFL};
    for (int sig = 1; sig < SIGNALS; sig++) {
        if (!ends_program(sig) || REAL(sigaction)(sig, NULL, &now) != 0 || is_handler(&now) ||
            now.sa_handler == SIG_IGN)
            continue;
        act.sa_flags = sig == SIGSEGV || sig == SIGBUS ? SA_ONSTACK : 0;
        install(sig, &act, NULL);
    }
    act.sa_flags = 0;
    for (int sig = 1; sig < SIGNALS; sig++)
        if (ends_program(sig) && wanted_of(sig)->sa_handler == SIG_DFL)
            want(sig, &act);
    give_stack();
    __atomic_store_n(&watching, 1, __ATOMIC_RELEASE);
}

#define BRG_SECTION_SIGNAL
#define BRG_ALIAS BRG_DEFINE_ALIAS
#include "buffer/hooks.def"
