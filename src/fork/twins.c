/* See twins.h. */
#include "fork/twins.h"
#include "base/sys.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

struct twins_shared {
    uint32_t seen;
    uint64_t saved[TWINS_MOST + 1];
};

uint32_t twins_wanted(int ranks, uint64_t processors)
{
    uint64_t serve = ranks > 0 ? (uint64_t)ranks / TWINS_RANKS : 0;
    if (serve > processors)
        serve = processors;
    if (serve > TWINS_MOST + 1)
        serve = TWINS_MOST + 1;
    return serve > 1 ? (uint32_t)serve - 1 : 0;
}

int twins_begin(struct twins *t)
{
    t->all = (int)sys_call(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK, 0, 0, 0, 0);
    if (t->all < 0)
        return t->all;
    t->shared = sys_map(sizeof *t->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
    if (t->shared)
        return 0;
    sys_close(t->all);
    t->all = -1;
    return -ENOMEM;
}

void twins_add(struct twins *t)
{
    t->n++;
    t->alive++;
}

void twins_become(struct twins *t)
{
    t->me = t->n + 1;
    t->alive = 0;
}

void twins_saw(struct twins *t, int expected)
{
    const uint64_t one = 1;
    uint32_t *seen = t->shared ? &t->shared->seen : &t->seen;
    uint32_t now = __atomic_add_fetch(seen, 1, __ATOMIC_RELAXED);
    if (t->shared && expected > 0 && now == (uint32_t)expected)
        sys_write(t->all, &one, sizeof one);
}

uint32_t twins_seen(const struct twins *t)
{
    return t->shared ? __atomic_load_n(&t->shared->seen, __ATOMIC_RELAXED) : t->seen;
}

uint64_t twins_saved(struct twins *t, uint64_t bytes)
{
    if (!t->shared)
        return bytes;
    uint64_t all = 0;
    __atomic_store_n(&t->shared->saved[t->me], bytes, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i <= TWINS_MOST; i++)
        all += __atomic_load_n(&t->shared->saved[i], __ATOMIC_RELAXED);
    return all;
}
