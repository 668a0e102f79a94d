/* See thread.h. */
#include "base/thread.h"

#include <signal.h>

int brg_thread_start(pthread_t *thread, void *(*body)(void *), void *context)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(thread, NULL, body, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

static void *body(void *beside)
{
    struct brg_beside *b = beside;
    b->work(b->context);
    return NULL;
}

void brg_beside_begin(struct brg_beside *b, int aside, void (*work)(void *), void *context)
{
    *b = (struct brg_beside){.work = work, .context = context};
    b->is_under_way = aside && brg_thread_start(&b->thread, body, b) == 0;
    if (!b->is_under_way)
        work(context);
}

void brg_beside_end(struct brg_beside *b)
{
    if (b->is_under_way)
        pthread_join(b->thread, NULL);
    b->is_under_way = 0;
}
