/* See arrivals.h. */
#include "fork/arrivals.h"

#include <signal.h>
#include <string.h>

static int stops_or_goes_on(uint32_t number)
{
    return number == SIGCONT || number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
}

static void judge(struct arrivals *a)
{
    int moved = a->noted_ns[SIGCONT] || a->noted_ns[SIGTSTP] || a->noted_ns[SIGTTIN] ||
                a->noted_ns[SIGTTOU];
    int taken_back = 0; /* by a later one that was for the group */
    for (uint32_t i = a->n; i-- > 0;) {
        struct arrival *one = &a->waiting[i];
        int moves = stops_or_goes_on(one->number);
        if (a->noted_ns[one->number] || (moves && (taken_back || (one->before_wake && moved))))
            one->for_group = 1;
        taken_back |= moves && one->for_group;
    }
}

static void wait_anew(struct arrivals *a, uint64_t now_ns)
{
    for (uint32_t i = 0; i < a->n; i++)
        a->waiting[i].since_ns = now_ns;
}

void arrivals_read(struct arrivals *a, uint32_t number, uint64_t now_ns)
{
    a->waiting[a->n++] = (struct arrival){.number = number, .since_ns = now_ns};
    if (stops_or_goes_on(number))
        wait_anew(a, now_ns);
    judge(a);
}

void arrivals_noted(struct arrivals *a, uint32_t number, uint64_t now_ns)
{
    a->noted_ns[number] = now_ns;
    judge(a);
}

void arrivals_woken(struct arrivals *a, uint64_t now_ns)
{
    for (uint32_t i = 0; i < a->n; i++)
        a->waiting[i].before_wake = 1;
    wait_anew(a, now_ns);
    judge(a);
}

void arrivals_had_all(struct arrivals *a, uint64_t began_ns)
{
    for (uint32_t number = 0; number < ARRIVALS_SIGNALS; number++)
        if (a->noted_ns[number] + ARRIVALS_APART_NS <= began_ns)
            a->noted_ns[number] = 0;
}

int arrivals_next(struct arrivals *a, uint64_t now_ns, uint32_t *number, int *for_group)
{
    for (uint32_t i = 0; i < a->n; i++) {
        struct arrival one = a->waiting[i];
        if (!one.for_group && now_ns < one.since_ns + ARRIVALS_WAIT_NS)
            continue;
        *number = one.number;
        *for_group = one.for_group;
        a->n--;
        memmove(&a->waiting[i], &a->waiting[i + 1], (a->n - i) * sizeof one);
        return 1;
    }
    return 0;
}

int arrivals_full(const struct arrivals *a)
{
    return a->n == ARRIVALS_WAITING;
}

int arrivals_has(const struct arrivals *a, uint32_t number)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (a->waiting[i].number == number)
            return 1;
    return 0;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

int arrivals_patience_ms(const struct arrivals *a, uint64_t now_ns)
{
    uint64_t until = UINT64_MAX;
    for (uint32_t i = 0; i < a->n; i++)
        until = earlier(until, a->waiting[i].since_ns + ARRIVALS_WAIT_NS);
    for (uint32_t number = 0; number < ARRIVALS_SIGNALS && !arrivals_full(a); number++)
        if (a->noted_ns[number])
            until = earlier(until, a->noted_ns[number] + ARRIVALS_APART_NS);
    if (until == UINT64_MAX)
        return -1;
    return until <= now_ns ? 0 : (int)((until - now_ns + 999999) / 1000000);
}
