/* Which interface a library speaks, and which MPI is in this process already. */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "mpi/mpi.h"
#include "mpi/next.h"

static int speaks_mpich(void *library)
{
    int (*get_version)(char *, int *);
    char text[8192] = ""; /* MPI_MAX_LIBRARY_VERSION_STRING of MPICH */
    int length = 0;
    *(void **)&get_version = dlsym(library, "MPI_Get_library_version");
    if (!get_version || get_version(text, &length))
        return 0;
    return strstr(text, "MPICH") || strstr(text, "MVAPICH") || strstr(text, "Intel(R) MPI") ||
           strstr(text, "CRAY");
}

/* MPICH 5 has this call in its own interface too, where the version is negative. */
static int speaks_abi(void *library)
{
    int (*get_version)(int *, int *);
    int major = -1, minor = -1;
    *(void **)&get_version = dlsym(library, "MPI_Abi_get_version");
    return get_version && get_version(&major, &minor) == 0 && major > 0;
}

int mpi_interface_of(void *library, const char *name, const struct mpi_interface **out,
                     struct brg_error *err)
{
    const char *missing = "";
    int rc;
    if (dlsym(library, "ompi_mpi_comm_world"))
        rc = mpi_openmpi(library, out, &missing);
    else if (speaks_abi(library))
        rc = mpi_abi(library, out, &missing);
    else if (speaks_mpich(library))
        rc = mpi_mpich(library, out, &missing);
    else
        return brg_error_set(err, -ENOSYS, "%s is neither Open MPI nor of MPICH's kin", name);
    if (rc)
        return brg_error_set(err, rc,
                             "%s lacks %s: it is too old (MPI 3 is needed), or a part of a static "
                             "MPI; use a shared one",
                             name, missing);
    return 0;
}

/* A handle by which MPI's calls are found, and the file they are in; NULL where there is none. */
static void *find_mpi(const char **path)
{
    Dl_info file;
    void *library = dlopen(NULL, RTLD_NOW), *call = library ? dlsym(library, "PMPI_Init") : NULL;
    if (call) {
        *path = dladdr(call, &file) ? file.dli_fname : "MPI";
        return library;
    }
    return mpi_loaded(path);
}

int mpi_join(const struct mpi_interface **out, struct brg_error *err)
{
    static const struct mpi_interface *known;
    if (!known) {
        const char *path;
        void *library = find_mpi(&path);
        if (!library)
            return brg_error_set(err, -EINVAL,
                                 "there is no MPI in this process that can be found: link it as a "
                                 "shared library (or a static one whole, with -rdynamic)");
        int rc = mpi_interface_of(library, path, &known, err);
        if (rc)
            return rc;
    }
    if (!known->running())
        return brg_error_set(err, -EINVAL,
                             "MPI does not run in this process: it takes files between MPI_Init "
                             "and MPI_Finalize");
    *out = known;
    return 0;
}
