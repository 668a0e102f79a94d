/* See yield.h. */
#include "drain/yield.h"

#include <dlfcn.h>
#include <pthread.h>

static struct {
    pthread_once_t once;
    void (*busy)(int change);
    void (*piece)(int going);
    void (*ours)(int inside);
    void (*sums)(struct watch_sums *sums);
    void (*place)(struct watch_place *place);
} pmpi = {.once = PTHREAD_ONCE_INIT};

static void look_for_it(void)
{
    *(void **)&pmpi.busy = dlsym(RTLD_DEFAULT, "brg_pmpi_busy");
    *(void **)&pmpi.piece = dlsym(RTLD_DEFAULT, "brg_pmpi_piece");
    *(void **)&pmpi.ours = dlsym(RTLD_DEFAULT, "brg_pmpi_ours");
    *(void **)&pmpi.sums = dlsym(RTLD_DEFAULT, "brg_pmpi_sums");
    *(void **)&pmpi.place = dlsym(RTLD_DEFAULT, "brg_pmpi_place");
}

void yield_busy(int change)
{
    pthread_once(&pmpi.once, look_for_it);
    if (pmpi.busy)
        pmpi.busy(change);
}

void yield_piece(int going)
{
    pthread_once(&pmpi.once, look_for_it);
    if (pmpi.piece)
        pmpi.piece(going);
}

void yield_ours(int inside)
{
    pthread_once(&pmpi.once, look_for_it);
    if (pmpi.ours)
        pmpi.ours(inside);
}

int yield_known(void)
{
    pthread_once(&pmpi.once, look_for_it);
    return pmpi.sums != NULL;
}

void yield_sums(struct watch_sums *sums)
{
    *sums = (struct watch_sums){.calls = 0};
    if (yield_known())
        pmpi.sums(sums);
}

void yield_place(struct watch_place *place)
{
    *place = (struct watch_place){.inside = 0};
    pthread_once(&pmpi.once, look_for_it);
    if (pmpi.place)
        pmpi.place(place);
}
