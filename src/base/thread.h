/* Threads of a library in somebody else's program: they take no signals. */
#ifndef BRG_BASE_THREAD_H
#define BRG_BASE_THREAD_H

#include <pthread.h>

/* pthread_create, with all signals blocked in the new thread. 0 or an errno. */
int brg_thread_start(pthread_t *thread, void *(*body)(void *), void *context);

/* Work that is done while its caller does something else. */
struct brg_beside {
    pthread_t thread;
    int is_under_way;
    void (*work)(void *context);
    void *context;
};

/* Begins it in a thread, if `aside` and if there can be one; else it is done at once. */
void brg_beside_begin(struct brg_beside *beside, int aside, void (*work)(void *context),
                      void *context);
/* Waits until it is done. */
void brg_beside_end(struct brg_beside *beside);

#endif
