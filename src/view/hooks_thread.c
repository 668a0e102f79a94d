/* Threads with small stacks.
 *
 * A thread's static TLS lies on its stack, and so does the room that brigade-rank asks ld.so to
 * keep for libraries that come later (program.h). A program that asks for a stack of 16 KiB would
 * get EINVAL: it gets that much more.
 */
#include "view/hooks.h"
#include "view/late.h"
#include "view/program.h"

/* What else is asked of the library that threads are in. */
static struct {
    __typeof__(pthread_attr_getstack) *get_stack;
    __typeof__(pthread_attr_getstacksize) *get_size;
    __typeof__(pthread_attr_setstacksize) *set_size;
    int found;
} threads;

int preload_find_threads(void)
{
    if (!__atomic_load_n(&threads.found, __ATOMIC_ACQUIRE)) {
        real.pthread_create = late_find("pthread_create");
        threads.get_stack = late_find("pthread_attr_getstack");
        threads.get_size = late_find("pthread_attr_getstacksize");
        threads.set_size = late_find("pthread_attr_setstacksize");
        int all = real.pthread_create && threads.get_stack && threads.get_size && threads.set_size;
        __atomic_store_n(&threads.found, all, __ATOMIC_RELEASE);
    }
    return threads.found;
}

/* Whether the program gave the thread's stack itself: then its size is final. The address of a
 * stack that was not given is 0, its end. */
static int has_own_stack(const pthread_attr_t *attributes)
{
    void *low = NULL;
    size_t size = 0;
    return threads.get_stack(attributes, &low, &size) != 0 || (uintptr_t)low + size != 0;
}

int hook_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, thread_start *start,
                        void *argument)
{
    pthread_attr_t larger;
    size_t size = 0;
    const struct view *v = hook_view();
    if (!preload_find_threads())
        return ENOSYS;
    if (v && attributes && !has_own_stack(attributes) && threads.get_size(attributes, &size) == 0 &&
        size <= SIZE_MAX - BRG_STATIC_TLS_BYTES) {
        larger = *attributes; /* what it points to stays the caller's */
        if (threads.set_size(&larger, size + BRG_STATIC_TLS_BYTES) == 0)
            attributes = &larger;
    }
    return REAL(pthread_create)(thread, attributes, start, argument);
}

#define BRG_SECTION_THREAD
#define BRG_ALIAS BRG_DEFINE_ALIAS
#include "view/hooks.def"
