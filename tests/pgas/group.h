/* The group of ranks that a test runs on, over the back end that its command line names:
 *
 *     single | windows LIBRARY | apart LIBRARY | shmem LIBRARY
 *
 * LIBRARY is an MPI's or an OpenSHMEM's, loaded here: one program serves all. `apart`: windows
 * whose ranks share no memory. */
#ifndef BRG_TEST_PGAS_GROUP_H
#define BRG_TEST_PGAS_GROUP_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pgas/pgas.h"
#include "world/world.h"

struct test_group {
    struct pgas *pgas;
    struct io_world *world; /* NULL: none */
    void *library;
    int used; /* words of the command line */
};

static inline void group_die(const char *what, const struct brg_error *err)
{
    printf("FAIL %s: %d %s\n", what, err->code, err->text);
    fflush(stdout);
    exit(1);
}

static inline void *group_call(void *library, const char *name)
{
    void *call = dlsym(library, name);
    if (!call) {
        printf("FAIL no %s\n", name);
        exit(1);
    }
    return call;
}

static inline void group_open_mpi(struct test_group *g, int share, uint64_t segment_bytes)
{
    int (*init)(int *, char ***, int, int *);
    const struct mpi_interface *mpi;
    struct brg_error err = {0};
    int provided;
    *(void **)&init = group_call(g->library, "MPI_Init_thread");
    init(NULL, NULL, 1, &provided);
    if (mpi_join(&mpi, &err) ||
        world_open(mpi->world, 0, share, segment_bytes, NULL, &g->world, &err) ||
        pgas_windows(g->world, &g->pgas, &err))
        group_die("windows", &err);
}

static inline void group_open_shmem(struct test_group *g, size_t pool_bytes)
{
    void (*init)(void);
    int (*n_pes)(void);
    struct brg_error err = {0};
    *(void **)&init = group_call(g->library, "shmem_init");
    *(void **)&n_pes = group_call(g->library, "shmem_n_pes");
    init();
    if (pgas_shmem(0, 0, (uint32_t)n_pes(), &g->pgas, &err) || pgas_shmem_reserve(pool_bytes, &err))
        group_die("shmem", &err);
}

/* segment_bytes: of the world, if there is one. */
static inline void group_open(struct test_group *g, char **words, uint64_t segment_bytes)
{
    struct brg_error err = {0};
    *g = (struct test_group){.used = strcmp(words[0], "single") ? 2 : 1};
    if (g->used == 2 && !(g->library = dlopen(words[1], RTLD_NOW | RTLD_GLOBAL))) {
        printf("FAIL %s\n", dlerror());
        exit(1);
    }
    if (g->used == 1 && pgas_single(&g->pgas, &err))
        group_die("single", &err);
    if (g->used == 2 && !strcmp(words[0], "shmem"))
        group_open_shmem(g, 1 << 20);
    else if (g->used == 2)
        group_open_mpi(g, !strcmp(words[0], "windows"), segment_bytes);
}

/* Ends the process: with 0 if no rank has failures. */
static inline void group_end(struct test_group *g, int n_failures)
{
    struct brg_error err = {0};
    void (*finalize)(void) = NULL;
    int64_t all = n_failures;
    g->pgas->reduce(g->pgas, PGAS_SUM, &all, 1, &err);
    if (all == 0 && g->pgas->rank == 0)
        printf("ok: %s, %u ranks, %u nodes\n", g->pgas->name, g->pgas->size, g->pgas->n_nodes);
    g->pgas->close(g->pgas);
    if (g->world)
        world_close(g->world);
    if (g->library)
        *(void **)&finalize = group_call(g->library, g->world ? "MPI_Finalize" : "shmem_finalize");
    if (finalize)
        finalize();
    exit(all != 0);
}

#endif
