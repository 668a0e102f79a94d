/* libbrigade_pmpi.so: stands before MPI and takes the time of a program's own collective calls.
 *
 * A program is linked with it before MPI, or it is preloaded. One library serves all MPIs: calls
 * are passed on in full machine words, whatever they mean. That is right where integers and
 * pointers are passed alike, in registers or in slots of a word: x86-64 and 64-bit ARM. What comes
 * next, MPI or another tool, is found as the linker would. No header of an MPI is included here.
 *
 * A call inside a call (an MPI that is made of its own) counts as part of it. */
#include "drain/pmpi_inside.h"

#include <pthread.h>
#include <time.h>

static struct {
    pthread_mutex_t lock;
    int files;
    unsigned long changes; /* of `files`: a call during which it changed is of neither kind */
    int going;             /* pieces */
    double last;           /* when a piece had gone; 0: none since a file began to be written */
    int inside;            /* calls that threads of the program are in */
    double ended;          /* when the last call did, and its sort; 0: there was none */
    uint64_t sort;
    struct watch watch;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local int depth;

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void brg_pmpi_busy(int change)
{
    pthread_mutex_lock(&state.lock);
    if (state.files == 0)
        state.last = 0;
    state.files += change;
    state.changes++;
    pthread_mutex_unlock(&state.lock);
}

void brg_pmpi_piece(int going)
{
    double now = seconds_now();
    pthread_mutex_lock(&state.lock);
    state.going += going ? 1 : -1;
    state.last = now;
    pthread_mutex_unlock(&state.lock);
}

void brg_pmpi_sums(struct watch_sums *sums)
{
    pthread_mutex_lock(&state.lock);
    *sums = state.watch.sums;
    pthread_mutex_unlock(&state.lock);
}

void brg_pmpi_place(struct watch_place *place)
{
    double now = seconds_now();
    pthread_mutex_lock(&state.lock);
    *place = (struct watch_place){.inside = state.inside,
                                  .since = now - state.ended,
                                  .long_gap = watch_long_gap(&state.watch)};
    place->gap = state.sort ? watch_gap(&state.watch, state.sort) : 0;
    pthread_mutex_unlock(&state.lock);
}

void brg_pmpi_ours(int inside)
{
    double now = seconds_now();
    depth += inside ? 1 : -1;
    pthread_mutex_lock(&state.lock);
    state.inside += inside ? 1 : -1;
    state.ended = now;
    pthread_mutex_unlock(&state.lock);
}

static uint64_t bytes_of(word count, word type)
{
    static int (*type_size)(word, int *);
    int size = 0;
    if (!type_size)
        *(void **)&type_size = mpi_next("PMPI_Type_size");
    return type_size && type_size(type, &size) == 0 ? (uint64_t)(unsigned)count * (unsigned)size
                                                    : 0;
}

struct pmpi_visit pmpi_enter(void)
{
    struct pmpi_visit visit = {.outer = depth++ == 0};
    if (!visit.outer)
        return visit;
    visit.began = seconds_now();
    pthread_mutex_lock(&state.lock);
    visit.changes = state.changes;
    if (!state.inside++ && state.sort)
        watch_note_gap(&state.watch, state.sort, visit.began - state.ended);
    pthread_mutex_unlock(&state.lock);
    return visit;
}

void pmpi_leave(const struct pmpi_visit *visit, enum pmpi_kind kind, uintptr_t communicator,
                uint64_t bytes)
{
    depth--;
    if (!visit->outer)
        return;
    double ended = seconds_now(), took = ended - visit->began;
    uint64_t key = watch_key(kind, communicator, bytes);
    pthread_mutex_lock(&state.lock);
    state.inside--;
    state.ended = ended;
    state.sort = key;
    int quiet = state.last > 0 && !state.going && visit->began - state.last > PMPI_QUIET_S;
    if (state.changes == visit->changes)
        watch_note(&state.watch, key, took,
                   !state.files ? WATCH_ALONE
                   : quiet      ? WATCH_QUIET
                                : WATCH_BUSY);
    pthread_mutex_unlock(&state.lock);
}

enum {
    MPI_FAILED = 1, /* not 0, in any MPI: there is none behind this library */
    NO_BYTES = 0
};

/* X(name, parameters, arguments, communicator, bytes that a rank gives, kind) */
#define WORDS2 (word a, word b)
#define WORDS3 (word a, word b, word c)
#define WORDS5 (word a, word b, word c, word d, word e)
#define WORDS6 (word a, word b, word c, word d, word e, word f)
#define WORDS7 (word a, word b, word c, word d, word e, word f, word g)
#define WORDS8 (word a, word b, word c, word d, word e, word f, word g, word h)
#define WORDS9 (word a, word b, word c, word d, word e, word f, word g, word h, word i)
#define COLLECTIVES(X)                                                                  \
    X(MPI_Barrier, (word a), (a), a, NO_BYTES, KIND_BARRIER)                            \
    X(MPI_Bcast, WORDS5, (a, b, c, d, e), e, bytes_of(b, c), KIND_BCAST)                \
    X(MPI_Reduce, WORDS7, (a, b, c, d, e, f, g), g, bytes_of(c, d), KIND_REDUCE)        \
    X(MPI_Allreduce, WORDS6, (a, b, c, d, e, f), f, bytes_of(c, d), KIND_ALLREDUCE)     \
    X(MPI_Scan, WORDS6, (a, b, c, d, e, f), f, bytes_of(c, d), KIND_SCAN)               \
    X(MPI_Exscan, WORDS6, (a, b, c, d, e, f), f, bytes_of(c, d), KIND_EXSCAN)           \
    X(MPI_Reduce_scatter, WORDS6, (a, b, c, d, e, f), f, NO_BYTES, KIND_REDUCE_SCATTER) \
    X(MPI_Reduce_scatter_block, WORDS6, (a, b, c, d, e, f), f, bytes_of(c, d),          \
      KIND_REDUCE_SCATTER_BLOCK)                                                        \
    X(MPI_Gather, WORDS8, (a, b, c, d, e, f, g, h), h, NO_BYTES, KIND_GATHER)           \
    X(MPI_Scatter, WORDS8, (a, b, c, d, e, f, g, h), h, NO_BYTES, KIND_SCATTER)         \
    X(MPI_Allgather, WORDS7, (a, b, c, d, e, f, g), g, bytes_of(e, f), KIND_ALLGATHER)  \
    X(MPI_Allgatherv, WORDS8, (a, b, c, d, e, f, g, h), h, NO_BYTES, KIND_ALLGATHERV)   \
    X(MPI_Alltoall, WORDS7, (a, b, c, d, e, f, g), g, bytes_of(e, f), KIND_ALLTOALL)    \
    X(MPI_Alltoallv, WORDS9, (a, b, c, d, e, f, g, h, i), i, NO_BYTES, KIND_ALLTOALLV)  \
    X(MPI_Wait, WORDS2, (a, b), 0, NO_BYTES, KIND_WAIT)                                 \
    X(MPI_Waitall, WORDS3, (a, b, c), 0, (uint64_t)(unsigned)a, KIND_WAITALL)

#define WRAP(name, parameters, arguments, communicator, bytes, kind)  \
    BRG_API int name parameters;                                      \
    int name parameters                                               \
    {                                                                 \
        static int(*next) parameters;                                 \
        if (!next)                                                    \
            *(void **)&next = mpi_next(#name);                        \
        if (!next)                                                    \
            return MPI_FAILED;                                        \
        struct pmpi_visit visit = pmpi_enter();                       \
        int rc = next arguments;                                      \
        pmpi_leave(&visit, kind, (uintptr_t)(communicator), (bytes)); \
        return rc;                                                    \
    }

COLLECTIVES(WRAP)
