/* The queue of the metadata server, shared by all nodes, as times at which servers become free.
 *
 * A request is accepted by moving one number forward: free_at = max(now, free_at) + service. There
 * is no lock, so a process that is killed at any point blocks nobody; waiting is one sleep until a
 * known time, so that an idle or a busy queue costs no processor time.
 */
#include "lab/slowfs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct slow_queue *slow_queue_open(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return NULL;
    struct slow_queue *queue = MAP_FAILED;
    if (ftruncate(fd, sizeof *queue) == 0)
        queue = mmap(NULL, sizeof *queue, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    int saved = errno;
    close(fd);
    errno = saved;
    return queue == MAP_FAILED ? NULL : queue;
}

int64_t slow_queue_accept(struct slow_queue *queue, int servers, int64_t service_ns, int64_t now_ns)
{
    for (;;) {
        int first = 0;
        int64_t free_at = INT64_MAX;
        for (int i = 0; i < servers; i++) {
            int64_t at = __atomic_load_n(&queue->free_at_ns[i], __ATOMIC_RELAXED);
            if (at < free_at) {
                free_at = at;
                first = i;
            }
        }
        int64_t due = (free_at > now_ns ? free_at : now_ns) + service_ns;
        if (__atomic_compare_exchange_n(&queue->free_at_ns[first], &free_at, due, 0,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return due;
    }
}

void slow_queue_wait(struct slow_queue *queue, int servers, int64_t service_ns)
{
    if (service_ns == 0)
        return;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t now_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    int64_t due = slow_queue_accept(queue, servers, service_ns, now_ns);
    struct timespec until = {.tv_sec = due / 1000000000, .tv_nsec = due % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}
