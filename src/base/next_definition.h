/* The definition of a function that a program would have got without the library that asks.
 *
 * Compiled into each library that asks: it is for what comes after that one. */
#ifndef BRG_BASE_NEXT_DEFINITION_H
#define BRG_BASE_NEXT_DEFINITION_H

/* As dlsym(RTLD_NEXT) of glibc 2.36 and later, or NULL. Before, that gives the oldest of several
 * versions (bug 14932): a realpath that allocates nothing, a pthread_cond_timedwait for another
 * kind of condition; what is linked has the default one. Keeps errno; an error that waits for the
 * program's dlerror() is forgotten. */
void *next_function(const char *name) __attribute__((visibility("hidden")));

/* The same, of the objects that come after the caller's in the order in which they were loaded,
 * without a word to ld.so: dlerror() is as it was. Not for what chooses its code when it is loaded
 * (IFUNC). */
void *next_definition(const char *name) __attribute__((visibility("hidden")));

/* Whether one object has a function or variable, as dl_iterate_phdr() tells of it. */
struct dl_phdr_info;
int is_defined_by(const struct dl_phdr_info *object, const char *name)
    __attribute__((visibility("hidden")));

/* Whether an object that is loaded has a function or variable, or refers to that of another one. */
int is_defined_by_any(const char *name) __attribute__((visibility("hidden")));
int is_used_by_any(const char *name) __attribute__((visibility("hidden")));

#endif
