/* Ranks that wait for others in MPI_Init and MPI_Finalize.
 *
 * Open MPI's look for what has come and sleep for 100 us, in turns (OMPI_LAZY_WAIT_FOR_COMPLETION).
 * Where a node has more ranks than processors, those that wait so take more time than is left to
 * the ones that they wait for. Here they sleep a thirty-second of what they have waited: that much
 * later, and 5 ms at most, do they see that all have come.
 */
#include "base/clock.h"
#include "base/next_definition.h"
#include "base/object.h"
#include "base/text.h"
#include "view/hooks.h"

enum {
    LAZY_US = 100,
    LONGEST_US = 5000,
    PART = 32,            /* of what has been waited */
    ANOTHER_US = 1000000, /* a wait of which nothing was heard for so long is over */
};

/* libmpi.so, whatever its number, by whichever of its links. */
static int is_open_mpi(struct dl_phdr_info *object, size_t size, void *caller)
{
    (void)size;
    return text_starts(text_base(object->dlpi_name), "libmpi.so") && object_has(object, caller) &&
           is_defined_by(object, "ompi_mpi_init");
}

/* A loop, Open MPI's or a program's own, is looked up once. */
static int is_lazy_wait(void *caller)
{
    static void *lazy, *other;
    if (caller == __atomic_load_n(&lazy, __ATOMIC_RELAXED))
        return 1;
    if (caller == __atomic_load_n(&other, __ATOMIC_RELAXED))
        return 0;
    int is = dl_iterate_phdr(is_open_mpi, caller);
    __atomic_store_n(is ? &lazy : &other, caller, __ATOMIC_RELAXED);
    return is;
}

/* Microseconds to sleep in the wait at `caller`. One thread waits: others would share its time. */
static useconds_t patience(const void *caller)
{
    static const void *where;
    static uint64_t began, last; /* us */
    uint64_t now = brg_clock_ns() / 1000;
    if (caller != where || now - last > ANOTHER_US) {
        where = caller;
        began = now;
    }
    last = now;
    uint64_t part = (now - began) / PART;
    return part < LAZY_US ? LAZY_US : part > LONGEST_US ? LONGEST_US : (useconds_t)part;
}

int hook_usleep(useconds_t microseconds)
{
    void *caller = __builtin_return_address(0);
    if (microseconds == LAZY_US && serves(hook_view()) && is_lazy_wait(caller))
        microseconds = patience(caller);
    return REAL(usleep)(microseconds);
}

#define BRG_SECTION_WAIT
#define BRG_ALIAS BRG_DEFINE_ALIAS
#include "view/hooks.def"
