/* Who waits long for others lets MPI move on what is under way: at once again while it moves, and
 * seldom where it does not. */
#include <stdlib.h>
#include <time.h>

#include "../claim.h"
#include "base/clock.h"
#include "world/area.h"
#include "world/world.h"

enum {
    TICKS = 100,
    FEW = TICKS / 4,
    ROUNDS = 50 /* one of them at least is little disturbed, on a machine that does much else */
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

/* The fewest of a round where nothing moves. */
static int soon_of_idle(struct io_world *w)
{
    int least = TICKS;
    for (int i = 0; i < ROUNDS && least > FEW; i++) {
        int soon = soon_of(w, 0);
        least = soon < least ? soon : least;
    }
    return least;
}

static void a_tick_that_moved_something_is_known(void)
{
    static const struct mpi_interface mpi = {.progress = progress};
    struct io_world *w = calloc(1, sizeof *w);
    w->mpi = &mpi;
    soon_of(w, 0); /* how long they take */
    int idle = soon_of_idle(w), moving = soon_of(w, 16);
    CHECK(idle <= FEW, "%d of idle ones", idle);
    CHECK(moving == TICKS, "%d of those that move", moving);
    idle = soon_of_idle(w);
    CHECK(idle <= FEW, "%d when it has ended", idle);
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
