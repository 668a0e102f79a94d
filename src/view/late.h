/* Functions of threads, where they are in a library of their own: before glibc 2.34 a program may
 * bring libpthread long after it began, by dlopen, and where RTLD_NEXT does not look. Its calls
 * come to our definitions even so, which are in front of all. */
#ifndef BRG_VIEW_LATE_H
#define BRG_VIEW_LATE_H

#include "base/next_definition.h"

#include <dlfcn.h>
#include <errno.h>

/* A function by its name, or NULL. Keeps errno, and dlerror() for the program. */
static inline void *late_find(const char *name)
{
    int saved = errno;
    void *found = next_function(name);
    void *library = found ? NULL : dlopen("libpthread.so.0", RTLD_LAZY | RTLD_NOLOAD);
    if (library) {
        found = dlsym(library, name);
        dlclose(library); /* it is never unloaded */
    }
    if (!found)
        dlerror();
    errno = saved;
    return found;
}

#endif
