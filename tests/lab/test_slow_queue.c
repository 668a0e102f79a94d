/* The queue of the slow file system, in virtual time: nothing here waits. */
#include "lab/slowfs.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define SERVICE 1000
#define THREADS 4
#define EACH 20000

static struct slow_queue queue;

static void clear(void)
{
    memset(&queue, 0, sizeof queue);
}

static void requests_at_one_server_follow_each_other(void)
{
    clear();
    for (int64_t i = 1; i <= 100; i++)
        assert(slow_queue_accept(&queue, 1, SERVICE, 50) == 50 + i * SERVICE);
}

static void an_idle_server_starts_at_once_and_saves_up_nothing(void)
{
    clear();
    assert(slow_queue_accept(&queue, 1, SERVICE, 10) == 10 + SERVICE);
    assert(slow_queue_accept(&queue, 1, SERVICE, 9000) == 9000 + SERVICE);
}

static void servers_share_the_requests(void)
{
    clear();
    int64_t last = 0;
    for (int i = 0; i < 90; i++)
        last = slow_queue_accept(&queue, 3, SERVICE, 0);
    assert(last == 30 * SERVICE);
}

static void *ask(void *unused)
{
    for (int i = 0; i < EACH; i++)
        slow_queue_accept(&queue, 2, SERVICE, 0);
    return unused;
}

static void no_request_is_lost_when_many_ask_at_once(void)
{
    clear();
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert(pthread_create(&threads[i], NULL, ask, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    int64_t served = queue.free_at_ns[0] + queue.free_at_ns[1];
    assert(served == (int64_t)THREADS * EACH * SERVICE);
    int64_t apart = queue.free_at_ns[0] - queue.free_at_ns[1];
    assert(apart >= -THREADS * SERVICE && apart <= THREADS * SERVICE);
}

int main(void)
{
    requests_at_one_server_follow_each_other();
    an_idle_server_starts_at_once_and_saves_up_nothing();
    servers_share_the_requests();
    no_request_is_lost_when_many_ask_at_once();
    puts("ok");
    return 0;
}
