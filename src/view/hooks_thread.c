/* Threads with small stacks.
 *
 * A thread's static TLS lies on its stack, and so does the room that brigade-rank asks ld.so to
 * keep for libraries that come later (program.h). A program that asks for a stack of 16 KiB would
 * get EINVAL: it gets that much more.
 */
#include "view/hooks.h"
#include "view/program.h"

/* Whether the program gave the thread's stack itself: then its size is final. The address of a
 * stack that was not given is 0, its end. */
static int has_own_stack(const pthread_attr_t *attributes)
{
    void *low = NULL;
    size_t size = 0;
    return pthread_attr_getstack(attributes, &low, &size) != 0 || (uintptr_t)low + size != 0;
}

int hook_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, thread_start *start,
                        void *argument)
{
    pthread_attr_t larger;
    size_t size = 0;
    const struct view *v = hook_view();
    if (!REAL(pthread_create))
        return ENOSYS;
    if (v && attributes && !has_own_stack(attributes) &&
        pthread_attr_getstacksize(attributes, &size) == 0 &&
        size <= SIZE_MAX - BRG_STATIC_TLS_BYTES) {
        larger = *attributes; /* what it points to stays the caller's */
        if (pthread_attr_setstacksize(&larger, size + BRG_STATIC_TLS_BYTES) == 0)
            attributes = &larger;
    }
    return REAL(pthread_create)(thread, attributes, start, argument);
}

#define BRG_SECTION_THREAD
#define BRG_ALIAS BRG_DEFINE_ALIAS
#include "view/hooks.def"
