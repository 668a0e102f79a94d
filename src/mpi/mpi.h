/* MPI as stream_nets, found at run time: nothing here links one.
 *
 * Three binary interfaces cover the field. In Open MPI's, handles are addresses of objects that the
 * library exports; in MPICH's (MPICH, Intel MPI, MVAPICH, Cray MPICH) they are fixed integers; in
 * MPI's own, since MPI 5.0, fixed pointers. Which one a library speaks is read off its symbols.
 * Only non-blocking calls are used for what may take long, so that waiting is our own affair: it
 * sleeps, and hears signals.
 *
 * Either a program of ours starts MPI (`mpi_start`: brigade-stage), or a library of ours joins the
 * MPI of the program it is loaded into (`mpi_join`: libbrigade_io). One of them, once a process.
 */
#ifndef BRG_MPI_MPI_H
#define BRG_MPI_MPI_H

#include <stdint.h>

#include "brigade/error.h"
#include "stream/net.h"

/* A communicator as the program holds it: a pointer, or MPICH's int, widened. */
typedef uintptr_t mpi_handle;

/* One-sided access to memory of the other ranks. Calls return 0 or -errno. */
struct mpi_windows {
    /* Collective over `net`. The `bytes` at `memory`, as many on each rank, may be reached by all
     * others until `close`; they stay the caller's. */
    int (*open)(struct stream_net *net, void *memory, size_t bytes, void **window);
    /* Collective. Nothing may be under way. */
    void (*close)(void *window);
    /* `at`: byte in the memory of `rank`. Done only after `flush`. */
    int (*put)(void *window, const void *from, size_t bytes, uint32_t rank, uint64_t at);
    int (*get)(void *window, void *to, size_t bytes, uint32_t rank, uint64_t at);
    /* At once; atomic with others of its kind only. */
    int (*fetch_add)(void *window, uint64_t add, uint32_t rank, uint64_t at, uint64_t *before);
    /* What this rank began with `rank` is done, here and there. */
    int (*flush)(void *window, uint32_t rank);
    /* What others have done here is seen by plain loads. */
    int (*sync)(void *window);
};

/* What a binary interface offers. Calls return 0 or -errno. */
struct mpi_interface {
    /* Starts MPI, funneled; *net is MPI_COMM_WORLD. */
    int (*start)(struct stream_net **net, struct brg_error *err);
    /* Not -errno: 1 between MPI_Init and MPI_Finalize. */
    int (*running)(void);
    /* Not -errno: 1 where `comm` has ranks, of one group. Local; MPI_COMM_NULL may be asked. */
    int (*of_one_group)(mpi_handle comm);
    /* Collective. Begins a net over a duplicate of `comm`, without waiting in MPI, where ranks spin
     * in each other's way. Until its request is done, and it is settled, it can only be tested. */
    int (*duplicate)(mpi_handle comm, struct stream_net **net, struct stream_request *request);
    void (*settle)(struct stream_net *net);
    /* A net over `comm` itself, which stays the caller's, and which nobody else may use. */
    int (*over)(mpi_handle comm, struct stream_net **net);
    /* The same for a communicator that the program goes on to use: collective calls only, which are
     * told apart by their order, in what is a collective call of the program's on it. */
    int (*borrow)(mpi_handle comm, struct stream_net **net);
    /* Frees a net of `over` or `borrow`, or, collective, of duplicate; nothing may be under way on
     * it. */
    void (*release)(struct stream_net *net);
    /* Lets MPI move on what is under way, whoever began it. */
    void (*progress)(void);
    /* Whether a message of this tag can be received; lets MPI move on what is under way. */
    int (*waits)(struct stream_net *net, int tag);
    mpi_handle (*from_fortran)(int32_t comm);
    /* One value a communicator keeps; drop(value) is called when it is freed or MPI ends. */
    void *(*kept)(mpi_handle comm);
    int (*keep)(mpi_handle comm, void *value, void (*drop)(void *value));
    mpi_handle world, self;
    const struct mpi_windows *windows; /* NULL: the library lacks some call that they need */
    const struct mpi_types *types;     /* mpi/types.h */
    const struct mpi_files *files;     /* mpi/files.h; NULL: it lacks some call */
};

/* The interfaces. `library` is a handle of dlopen; on -ENOSYS *missing is a symbol it lacks. */
int mpi_openmpi(void *library, const struct mpi_interface **out, const char **missing);
int mpi_mpich(void *library, const struct mpi_interface **out, const char **missing);
int mpi_abi(void *library, const struct mpi_interface **out, const char **missing);

/* The interface that `library` speaks, or an error that names `name`. */
int mpi_interface_of(void *library, const char *name, const struct mpi_interface **out,
                     struct brg_error *err);

/* The MPI that runs in this process already, whoever loaded it and however. -EINVAL where there is
 * none, or none that runs (not initialised, finalised). */
int mpi_join(const struct mpi_interface **out, struct brg_error *err);

/* One process and no messages. Never fails. */
struct stream_net *net_single(void);

#endif
