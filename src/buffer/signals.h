/* Signals while a thread is inside, of memory that is not there, and of a program's end.
 *
 * A handler of the program's is entered through one of ours. If the thread is inside (it may hold
 * the lock of a file), the signal is kept, all further ones are blocked in the interrupted context,
 * and leaving sends it again with all it carried. Otherwise nothing is different.
 *
 * Signals that end a program get a handler of ours from the first buffered file on, where the
 * program has none: it writes out what is pending, then lets the signal have its effect.
 */
#ifndef BRG_BUFFER_SIGNALS_H
#define BRG_BUFFER_SIGNALS_H

#include <setjmp.h>
#include <signal.h>

#define KEPT_MOST 16

struct inside {
    volatile int inside;
    volatile int n_kept;
    volatile int guarded; /* bytes of the program's are being touched: `guard` is where to go on */
    int worker;
    unsigned long old_mask;
    sigjmp_buf guard;
    siginfo_t kept[KEPT_MOST];
};
extern __thread struct inside me __attribute__((tls_model("initial-exec")));

void signals_deliver(void);

static inline void inside_enter(void)
{
    me.inside = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}
static inline void inside_leave(void)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (__builtin_expect(me.worker, 0))
        return;
    me.inside = 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (__builtin_expect(me.n_kept, 0))
        signals_deliver();
}
static inline void inside_for_ever(void) /* a thread of our own */
{
    me.worker = me.inside = 1;
}

/* 0; then again, not 0, if what is touched before guard_clear() is not there. A macro, as the frame
 * must live. */
#define guard_set() (me.guarded = 1, sigsetjmp(me.guard, 0))
static inline void guard_clear(void)
{
    me.guarded = 0;
}

void signals_watch(void); /* a file is buffered now */

#endif
