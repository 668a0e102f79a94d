/* Who waits long for others lets MPI move on what is under way: at once again while it moves, and
 * seldom where it does not. */
#include <stdlib.h>
#include <time.h>

#include "../claim.h"
#include "base/clock.h"
#include "world/area.h"
#include "world/world.h"

enum {
    TICKS = 100
};

static int calls, moves_each;

/* One of so many calls takes a millisecond of the processor's time. */
static void progress(void)
{
    struct timespec now, began;
    for (volatile int i = 0; i < 100; i++)
        ;
    if (!moves_each || calls++ % moves_each)
        return;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &began);
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((now.tv_sec - began.tv_sec) * 1000000000L + now.tv_nsec - began.tv_nsec < 1000000);
}

static int soon_of(struct io_world *w, int each)
{
    int soon = 0;
    calls = 0;
    moves_each = each;
    for (int i = 0; i < TICKS; i++)
        soon += world_tick(w);
    return soon;
}

static void a_tick_that_moved_something_is_known(void)
{
    static const struct mpi_interface mpi = {.progress = progress};
    struct io_world *w = calloc(1, sizeof *w);
    w->mpi = &mpi;
    soon_of(w, 0); /* how long they take */
    int idle = soon_of(w, 0), moving = soon_of(w, 16);
    CHECK(idle < TICKS, "%d of idle ones", idle);
    CHECK(moving == TICKS, "%d of those that move", moving);
    CHECK(soon_of(w, 0) < TICKS, "when it has ended");
    free(w);
}

static struct io_area *area;
static _Atomic uint32_t counter;
static int left;

static int count_down(void *nothing)
{
    (void)nothing;
    if (--left == 0)
        area_set(&counter, 1);
    return 1;
}

/* Each would be after 20 ms. */
static void more_ticks_come_soon(void)
{
    struct area_token token;
    CHECK(area_create(1, 1 << 16, &area, &token) == 0, "no memory");
    left = 200;
    area->tick = count_down;
    uint64_t began = brg_clock_ns();
    CHECK(area_wait(area, &counter, 1) == 0, "it failed");
    double took = (double)(brg_clock_ns() - began) * 1e-9;
    CHECK(left == 0 && took < 2, "%d left after %.3f s", left, took);
    area_seal(area);
    area_destroy(area);
}

int main(void)
{
    a_tick_that_moved_something_is_known();
    more_ticks_come_soon();
    return failures != 0;
}
