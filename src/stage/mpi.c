/* See mpi.h. Here: which library, which interface, and what makes its start cheap. */
#include "stage/mpi.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "stage/keeper.h"

static const char *const OPENMPI_NAMES[] = {"libmpi.so.40", "libmpi.so", NULL};
static const char *const MPICH_NAMES[] = {"libmpich.so.12", "libmpi.so.12", "libmpi_cray.so.12",
                                          NULL};

static int is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

static void *open_first(const char *const *names)
{
    for (; *names; names++) {
        void *library = dlopen(*names, RTLD_NOW | RTLD_GLOBAL);
        if (library)
            return library;
    }
    return NULL;
}

/* Open MPI's plug-ins look for its symbols in the global scope: RTLD_GLOBAL. */
static int open_library(const char *path, void **library, struct brg_error *err)
{
    if (path) {
        *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
        if (!*library)
            return brg_error_set(err, -ENOENT, "cannot load MPI from %s: %s", path, dlerror());
        return 0;
    }
    int pmix = is_set("OMPI_COMM_WORLD_SIZE") || is_set("PMIX_RANK");
    int pmi = is_set("PMI_RANK") || is_set("PMI_FD") || is_set("PMI_SIZE");
    *library = NULL;
    if (pmix)
        *library = open_first(OPENMPI_NAMES);
    if (!*library && (pmi || pmix))
        *library = open_first(MPICH_NAMES);
    if (!*library && pmi)
        *library = open_first(OPENMPI_NAMES);
    if (!*library && (pmix || pmi))
        return brg_error_set(err, -ENOENT,
                             "no MPI library found (tried libmpi.so.40, "
                             "libmpich.so.12, libmpi.so.12); name it with --mpi PATH");
    return 0;
}

/* Devices of networks that Open MPI reaches by other ways than TCP and shared memory. */
static int has_fast_network(void)
{
    static const char *const signs[] = {
        "/sys/class/infiniband", "/sys/class/cxi", "/sys/class/hfi1", "/sys/class/bxi",
        "/dev/hfi1_0",           "/dev/ipath",     "/dev/kgni0",      "/dev/bxi0"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (access(signs[i], F_OK) == 0)
            return 1;
    return 0;
}

/* Only what changes no result, only where the user said nothing. Without a fast network Open MPI
 * ends with "ob1" anyway, after 0.2 s of opening the libraries of networks that are not there. */
static void make_openmpi_start_cheap(void)
{
    /* We sleep between looks. A look that also gives the processor away comes back late on a busy
     * machine: staging took twice as long. */
    setenv("OMPI_MCA_mpi_yield_when_idle", "0", 0);
    if (!is_set("OMPI_MCA_pml") && !is_set("OMPI_MCA_mtl") && !is_set("OMPI_MCA_btl") &&
        !has_fast_network())
        setenv("OMPI_MCA_pml", "ob1", 0);
}

int mpi_start(const char *path, struct stream_net **net, struct brg_error *err)
{
    void *library;
    int rc;
    if (path && strcmp(path, "none") == 0) {
        *net = net_single();
        return 0;
    }
    rc = open_library(path, &library, err);
    if (rc)
        return rc;
    if (!library)
        *net = net_single();
    else {
        const struct mpi_interface *mpi;
        make_openmpi_start_cheap();
        rc = mpi_interface_of(library, path ? path : "the MPI library found", &mpi, err);
        if (!rc)
            rc = mpi->start(net, err);
        if (rc)
            return rc;
    }
    long launched = keeper_size();
    if ((*net)->size == 1 && launched > 1)
        return brg_error_set(err, -EPROTO,
                             "the launcher started %ld processes, but MPI sees one: "
                             "give srun --mpi=pmix (or pmi2), or name the MPI library that belongs "
                             "to the launcher with --mpi",
                             launched);
    return 0;
}
