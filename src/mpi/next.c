/* See next.h. */
#include "mpi/next.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

static int note_mpi(struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *name = slash ? slash + 1 : info->dlpi_name;
    if (strncmp(name, "libmpi.so", 9) && strncmp(name, "libmpi_abi.so", 13) &&
        strncmp(name, "libmpich.so", 11) && strncmp(name, "libmpi_cray.so", 14) &&
        strncmp(name, "libmpi_gnu", 10))
        return 0;
    *(const char **)found = info->dlpi_name;
    return 1;
}

void *mpi_loaded(const char **path)
{
    return dl_iterate_phdr(note_mpi, path) ? dlopen(*path, RTLD_NOW | RTLD_NOLOAD) : NULL;
}

void *mpi_next(const char *name)
{
    const char *path;
    void *next = dlsym(RTLD_NEXT, name), *library = next ? NULL : mpi_loaded(&path);
    return library ? dlsym(library, name) : next;
}
