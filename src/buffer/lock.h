/* A mutex and an event on futexes.
 *
 * Not the C library's: these wait without being a cancellation point, may be reset in a forked
 * child, and take eight bytes.
 */
#ifndef BRG_BUFFER_LOCK_H
#define BRG_BUFFER_LOCK_H

#include "base/sys.h"

#include <linux/futex.h>
#include <stdint.h>

struct lock {
    uint32_t state; /* 0 free, 1 held, 2 held and waited for */
};

/* Something happened: waiters compare `count` before and after. */
struct event {
    uint32_t count, waiting;
};

static inline void futex_wait(uint32_t *at, uint32_t value, const struct timespec *limit)
{
    sys_call(SYS_futex, (long)at, FUTEX_WAIT_PRIVATE, value, (long)limit, 0, 0);
}
static inline void futex_wake(uint32_t *at, int n)
{
    sys_call(SYS_futex, (long)at, FUTEX_WAKE_PRIVATE, n, 0, 0, 0);
}

static inline int lock_try(struct lock *l)
{
    uint32_t free = 0;
    return __atomic_compare_exchange_n(&l->state, &free, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}
static inline void lock_take(struct lock *l)
{
    if (__builtin_expect(lock_try(l), 1))
        return;
    while (__atomic_exchange_n(&l->state, 2, __ATOMIC_ACQUIRE) != 0)
        futex_wait(&l->state, 2, NULL);
}
static inline void lock_leave(struct lock *l)
{
    if (__builtin_expect(__atomic_exchange_n(&l->state, 0, __ATOMIC_RELEASE) == 2, 0))
        futex_wake(&l->state, 1);
}

static inline void event_tell(struct event *e)
{
    __atomic_add_fetch(&e->count, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&e->waiting, __ATOMIC_SEQ_CST))
        futex_wake(&e->count, INT32_MAX);
}
/* Waits until the event is told after `count` was read; at most until `limit` where that is given.
 * May return early. */
static inline void event_wait(struct event *e, uint32_t count, const struct timespec *limit)
{
    __atomic_add_fetch(&e->waiting, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&e->count, __ATOMIC_SEQ_CST) == count)
        futex_wait(&e->count, count, limit);
    __atomic_sub_fetch(&e->waiting, 1, __ATOMIC_SEQ_CST);
}

#endif
