/* See drain.h and drain_inside.h. */
#include "drain/drain_inside.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "drain/yield.h"

#define LARGE (64u << 10) /* entries from here on are aligned to pages, for stores that want it */
#define PAGE 4096u

struct drain *drain_new(void)
{
    struct drain *d = calloc(1, sizeof *d);
    pthread_condattr_t clock;
    if (!d)
        return NULL;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->work, &clock);
    pthread_cond_init(&d->moved, &clock);
    pthread_condattr_destroy(&clock);
    return d;
}

void drain_begin(struct drain *d, struct io_store *store, const struct io_hints *hints)
{
    d->store = store;
    d->async = hints->async;
    d->room = (hints->buffer_bytes + PAGE - 1) / PAGE * PAGE;
    for (d->most = PAGE; d->most * 8 <= d->room;)
        d->most *= 2;
    struct watch_sums sums;
    yield_sums(&sums);
    pace_start(&d->pace, (double)hints->rate_bytes_s, hints->slowdown, &sums, brg_clock_ns());
    d->paced = hints->rate_bytes_s || (yield_known() && hints->slowdown < PACE_ANY);
}

int drain_open(struct io_store *store, const struct io_hints *hints, struct drain **drain,
               struct brg_error *err)
{
    *drain = drain_new();
    if (!*drain)
        return brg_error_set(err, -ENOMEM, "no memory for a file");
    drain_begin(*drain, store, hints);
    return 0;
}

void drain_close(struct drain *d)
{
    if (!d)
        return;
    if (d->threaded) {
        pthread_mutex_lock(&d->lock);
        d->stop = 1;
        pthread_cond_broadcast(&d->work);
        pthread_mutex_unlock(&d->lock);
        pthread_join(d->thread, NULL);
    }
    if (d->ring)
        munmap(d->ring, d->room);
    free(d->entries);
    pthread_cond_destroy(&d->moved);
    pthread_cond_destroy(&d->work);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

/* With the lock held. Whether there is a thread now. */
static int have_thread(struct drain *d)
{
    if (!d->threaded)
        d->threaded = brg_thread_start(&d->thread, drain_thread, d) == 0;
    return d->threaded;
}

/* With the lock held. Whether bytes can be held back; if not, they never will be. */
static int have_ring(struct drain *d)
{
    if (d->ring || !d->async)
        return d->ring != NULL;
    void *ring = mmap(NULL, d->room, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    d->entries = calloc(MAX_ENTRIES, sizeof *d->entries);
    if (ring != MAP_FAILED && d->entries && have_thread(d)) {
        d->ring = ring;
        return 1;
    }
    if (ring != MAP_FAILED)
        munmap(ring, d->room);
    free(d->entries);
    d->entries = NULL;
    d->async = 0;
    return 0;
}

/* With the lock held. Waits for the thread to get on: 0, or not after `until` (NULL: for ever). */
static int wait_for_thread(struct drain *d, const struct timespec *until)
{
    if (!d->waiting++)
        pthread_cond_signal(&d->work);
    int rc = until ? pthread_cond_timedwait(&d->moved, &d->lock, until)
                   : pthread_cond_wait(&d->moved, &d->lock);
    d->waiting--;
    return rc;
}

/* With the lock held: room for `bytes` in one piece, waiting for it; or NULL after a failure. */
static struct entry *take_room(struct drain *d, size_t bytes, uint64_t offset)
{
    uint64_t align = bytes >= LARGE ? PAGE : 64, at = 0;
    while (!d->failure.code) {
        if (d->first == d->next)
            d->tail = d->head;
        at = (d->head + align - 1) & ~(align - 1);
        if (at % d->room + bytes > d->room)
            at += d->room - at % d->room;
        if (d->next - d->first < MAX_ENTRIES && at + bytes - d->tail <= d->room)
            break;
        wait_for_thread(d, NULL);
    }
    if (d->failure.code)
        return NULL;
    struct entry *entry = &d->entries[d->next++ % MAX_ENTRIES];
    *entry = (struct entry){.offset = offset, .at = at, .bytes = bytes};
    d->head = at + bytes;
    return entry;
}

/* With the lock held. */
static int failed(const struct drain *d, struct brg_error *err)
{
    if (d->failure.code && err)
        *err = d->failure;
    return d->failure.code;
}

int drain_write(struct drain *d, const void *buf, size_t bytes, uint64_t offset,
                struct brg_error *err)
{
    pthread_mutex_lock(&d->lock);
    if (!have_ring(d)) {
        pthread_mutex_unlock(&d->lock);
        return store_write(d->store, buf, bytes, offset, err);
    }
    for (const char *from = buf; bytes && !d->failure.code;) {
        size_t part = d->most - offset % d->most;
        if (part > bytes)
            part = bytes;
        struct entry *entry = take_room(d, part, offset);
        if (!entry)
            break;
        pthread_mutex_unlock(&d->lock);
        memcpy(d->ring + entry->at % d->room, from, part);
        pthread_mutex_lock(&d->lock);
        entry->ready = 1;
        pthread_cond_signal(&d->work);
        from += part;
        offset += part;
        bytes -= part;
    }
    int rc = failed(d, err);
    pthread_mutex_unlock(&d->lock);
    return rc;
}

/* With the lock held. */
static int holds_some_of(const struct drain *d, uint64_t low, uint64_t high)
{
    for (unsigned i = d->first; i != d->next; i++) {
        const struct entry *entry = &d->entries[i % MAX_ENTRIES];
        if (entry->offset < high && entry->offset + entry->bytes > low)
            return 1;
    }
    return 0;
}

int drain_clear(struct drain *d, uint64_t low, uint64_t high, struct brg_error *err)
{
    pthread_mutex_lock(&d->lock);
    while (!d->failure.code && holds_some_of(d, low, high))
        wait_for_thread(d, NULL);
    int rc = failed(d, err);
    pthread_mutex_unlock(&d->lock);
    return rc;
}

int drain_show(struct drain *d, struct brg_error *err)
{
    int rc = drain_clear(d, 0, UINT64_MAX, err);
    return rc ? rc : store_show(d->store, err);
}

void drain_run(struct drain *d, drain_job *job, void *context, int behind)
{
    pthread_mutex_lock(&d->lock);
    d->job = job;
    d->context = context;
    d->ended = 0;
    if (d->threaded || (behind && have_thread(d)))
        pthread_cond_signal(&d->work);
    else
        drain_do_job(d);
    pthread_mutex_unlock(&d->lock);
}

int drain_ended(struct drain *d, int wait_ms, struct brg_error *err)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += wait_ms % 1000 * 1000000L;
    until.tv_sec += wait_ms / 1000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&d->lock);
    while (!d->ended && !d->failure.code && wait_ms)
        if (wait_for_thread(d, &until))
            break;
    int rc = failed(d, err);
    if (!rc)
        rc = d->ended;
    pthread_mutex_unlock(&d->lock);
    return rc;
}

void drain_hear(struct drain *d)
{
    pthread_mutex_lock(&d->lock);
    d->heard = 1;
    pthread_mutex_unlock(&d->lock);
}

static const char *held_by(const struct drain *d)
{
    if (!d->paced)
        return "no rate, and nobody watches collective calls";
    if (!yield_known())
        return "hint rate; nobody watches collective calls";
    return d->pace.cap > 0 ? "hint rate, or collective calls" : "collective calls";
}

size_t drain_explain(struct drain *d, char *text, size_t room)
{
    int n = 0;
    text[0] = '\0';
    pthread_mutex_lock(&d->lock);
    if (d->ring)
        n = snprintf(text, room, "behind: %.1f MiB in %.2f s, held back for %.2f s (%s)\n",
                     (double)d->done_bytes / (1 << 20), (double)d->done_ns * 1e-9,
                     (double)d->held_ns * 1e-9, held_by(d));
    pthread_mutex_unlock(&d->lock);
    return n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
}

uint64_t drain_held(struct drain *d)
{
    pthread_mutex_lock(&d->lock);
    uint64_t held = 0;
    for (unsigned i = d->first; i != d->next; i++)
        held += d->entries[i % MAX_ENTRIES].bytes;
    pthread_mutex_unlock(&d->lock);
    return held;
}
