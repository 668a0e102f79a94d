/* The same calls under Fortran's names: of mpif.h and `use mpi`, and of `use mpi_f08`. Some MPIs
 * (Open MPI) go from these to C's profiling names, which libbrigade_pmpi.so does not see.
 *
 * Everything is passed by reference: a handle is an integer, a buffer its address, or that of its
 * description (f08ts); the last argument is ierror. Passed on as they came. */
#include "drain/pmpi_inside.h"

typedef const void *ref;

static int at(ref integer)
{
    return *(const int *)integer;
}

static uint64_t bytes_of(ref count, ref type)
{
    static void (*type_size)(ref, void *, void *);
    int64_t size[2] = {0}, error[2] = {0}; /* an integer may have 8 bytes */
    if (!type_size)
        *(void **)&type_size = mpi_next("pmpi_type_size_");
    if (!type_size)
        return 0;
    type_size(type, size, error);
    return (uint64_t)(unsigned)at(count) * (unsigned)size[0];
}

/* X(name, parameters, arguments, communicator, bytes that a rank gives, kind) */
#define REFS3 (ref a, ref b, ref c)
#define REFS4 (ref a, ref b, ref c, ref d)
#define REFS6 (ref a, ref b, ref c, ref d, ref e, ref f)
#define REFS7 (ref a, ref b, ref c, ref d, ref e, ref f, ref g)
#define REFS8 (ref a, ref b, ref c, ref d, ref e, ref f, ref g, ref h)
#define REFS9 (ref a, ref b, ref c, ref d, ref e, ref f, ref g, ref h, ref i)
#define REFS10 (ref a, ref b, ref c, ref d, ref e, ref f, ref g, ref h, ref i, ref j)
#define COLLECTIVES(X)                                                                       \
    X(mpi_barrier, (ref a, ref b), (a, b), at(a), 0, KIND_BARRIER)                           \
    X(mpi_bcast, REFS6, (a, b, c, d, e, f), at(e), bytes_of(b, c), KIND_BCAST)               \
    X(mpi_reduce, REFS8, (a, b, c, d, e, f, g, h), at(g), bytes_of(c, d), KIND_REDUCE)       \
    X(mpi_allreduce, REFS7, (a, b, c, d, e, f, g), at(f), bytes_of(c, d), KIND_ALLREDUCE)    \
    X(mpi_scan, REFS7, (a, b, c, d, e, f, g), at(f), bytes_of(c, d), KIND_SCAN)              \
    X(mpi_exscan, REFS7, (a, b, c, d, e, f, g), at(f), bytes_of(c, d), KIND_EXSCAN)          \
    X(mpi_reduce_scatter, REFS7, (a, b, c, d, e, f, g), at(f), 0, KIND_REDUCE_SCATTER)       \
    X(mpi_reduce_scatter_block, REFS7, (a, b, c, d, e, f, g), at(f), bytes_of(c, d),         \
      KIND_REDUCE_SCATTER_BLOCK)                                                             \
    X(mpi_gather, REFS9, (a, b, c, d, e, f, g, h, i), at(h), 0, KIND_GATHER)                 \
    X(mpi_scatter, REFS9, (a, b, c, d, e, f, g, h, i), at(h), 0, KIND_SCATTER)               \
    X(mpi_allgather, REFS8, (a, b, c, d, e, f, g, h), at(g), bytes_of(e, f), KIND_ALLGATHER) \
    X(mpi_allgatherv, REFS9, (a, b, c, d, e, f, g, h, i), at(h), 0, KIND_ALLGATHERV)         \
    X(mpi_alltoall, REFS8, (a, b, c, d, e, f, g, h), at(g), bytes_of(e, f), KIND_ALLTOALL)   \
    X(mpi_alltoallv, REFS10, (a, b, c, d, e, f, g, h, i, j), at(i), 0, KIND_ALLTOALLV)       \
    X(mpi_wait, REFS3, (a, b, c), 0, 0, KIND_WAIT)                                           \
    X(mpi_waitall, REFS4, (a, b, c, d), 0, (uint64_t)(unsigned)at(a), KIND_WAITALL)

#define WRAP(name, parameters, arguments, communicator, bytes, kind)            \
    BRG_API void name parameters;                                               \
    void name parameters                                                        \
    {                                                                           \
        static void(*next) parameters;                                          \
        if (!next)                                                              \
            *(void **)&next = mpi_next(#name);                                  \
        if (!next)                                                              \
            return;                                                             \
        struct pmpi_visit visit = pmpi_enter();                                 \
        next arguments;                                                         \
        pmpi_leave(&visit, kind, (uintptr_t)(unsigned)(communicator), (bytes)); \
    }

#define WRAP_ALL(name, ...)        \
    WRAP(name##_, __VA_ARGS__)     \
    WRAP(name##_f08_, __VA_ARGS__) \
    WRAP(name##_f08ts_, __VA_ARGS__)

COLLECTIVES(WRAP_ALL)
