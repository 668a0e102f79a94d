/* Preloaded into an OpenSHMEM program: puts of eight bytes store them twice, a moment apart, as
 * those of UCX over shared memory now and then do. */
#include <dlfcn.h>
#include <stddef.h>
#include <time.h>

#define APART_NS 400000L
#define TAKEN_OVER __attribute__((visibility("default")))

TAKEN_OVER void shmem_putmem(void *there, const void *from, size_t n, int pe);
TAKEN_OVER void shmem_long_p(long *there, long value, int pe);

static void *next(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

static void pause_between(void)
{
    const struct timespec apart = {.tv_nsec = APART_NS};
    void (*quiet)(void);
    *(void **)&quiet = next("shmem_quiet");
    quiet();
    nanosleep(&apart, NULL);
}

void shmem_putmem(void *there, const void *from, size_t n, int pe)
{
    static void (*put)(void *, const void *, size_t, int);
    if (!put)
        *(void **)&put = next("shmem_putmem");
    put(there, from, n, pe);
    if (n == 8) {
        pause_between();
        put(there, from, n, pe);
    }
}

void shmem_long_p(long *there, long value, int pe)
{
    shmem_putmem(there, &value, sizeof value, pe);
}
