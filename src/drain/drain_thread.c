/* The thread of a drain: how it writes, and when it may. See drain_inside.h. */
#include "drain/drain_inside.h"

#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "drain/yield.h"

#define LOOK_NS 50000000ull /* how often a drain that is held back looks around */

enum leave {
    LEAVE_NEVER, /* the drain ends */
    LEAVE_NOW,
    LEAVE_AGAIN /* the program has gone on: another size may fit better */
};

/* With the lock held. Waits until so many bytes may go, or until a gap is looked for again. */
static enum leave let_go(struct drain *d, size_t bytes)
{
    uint64_t began = brg_clock_ns();
    while (!d->stop) {
        struct watch_sums sums;
        struct watch_place place;
        uint64_t now = brg_clock_ns(), next;
        yield_sums(&sums);
        yield_place(&place);
        pace_look(&d->pace, &sums, d->heard, now);
        d->heard = 0;
        next = pace_next_ns(&d->pace, d->waiting);
        uint64_t gap = next <= now ? pace_gap_ns(&d->pace, bytes, &place, d->waiting) : 0;
        if (next <= now && !gap) {
            pace_go(&d->pace, bytes, d->waiting, now);
            d->held_ns += now - began;
            return LEAVE_NOW;
        }
        if (gap)
            next = now + gap;
        if (next > now + LOOK_NS)
            next = now + LOOK_NS;
        struct timespec until = {.tv_sec = (time_t)(next / 1000000000u),
                                 .tv_nsec = (long)(next % 1000000000u)};
        pthread_cond_timedwait(&d->work, &d->lock, &until);
        if (gap) {
            d->held_ns += brg_clock_ns() - began;
            return LEAVE_AGAIN;
        }
    }
    return LEAVE_NEVER;
}

/* With the lock held, which is let go while the store writes. */
static void write_piece(struct drain *d, const char *from, size_t bytes, uint64_t offset)
{
    struct brg_error failure = {.rank = -1, .offset = -1};
    pthread_mutex_unlock(&d->lock);
    yield_piece(1);
    uint64_t began = brg_clock_ns();
    int rc = store_write(d->store, from, bytes, offset, &failure);
    if (!rc && d->paced)
        store_push(d->store, bytes, offset, &failure);
    uint64_t took = brg_clock_ns() - began;
    yield_piece(0);
    pthread_mutex_lock(&d->lock);
    pace_gone(&d->pace, bytes, took);
    d->done_bytes += bytes;
    d->done_ns += took;
    if (failure.code)
        d->failure = failure;
}

/* With the lock held. Bytes of the next piece; none crosses a multiple of the largest. */
static size_t piece_at(struct drain *d, uint64_t offset)
{
    struct watch_place place;
    yield_place(&place);
    size_t piece = pace_piece(&d->pace, &place), room = PACE_LARGEST - offset % PACE_LARGEST;
    return piece < room ? piece : room;
}

/* With the lock held. */
static void write_oldest(struct drain *d)
{
    struct entry *entry = &d->entries[d->first % MAX_ENTRIES];
    const char *from = d->ring + entry->at % d->room;
    for (size_t done = 0; done < entry->bytes && !d->failure.code;) {
        uint64_t offset = entry->offset + done;
        size_t left = entry->bytes - done, piece = d->paced ? piece_at(d, offset) : left;
        if (piece > left)
            piece = left;
        enum leave leave = let_go(d, piece);
        if (leave == LEAVE_NEVER)
            break;
        if (leave == LEAVE_AGAIN)
            continue;
        write_piece(d, from + done, piece, offset);
        done += piece;
    }
    d->tail = entry->at + entry->bytes;
    d->first++;
    pthread_cond_broadcast(&d->moved);
}

void drain_do_job(struct drain *d)
{
    struct brg_error failure = {.rank = -1, .offset = -1};
    drain_job *job = d->job;
    if (!d->failure.code) {
        pthread_mutex_unlock(&d->lock);
        job(d->context, &failure);
        pthread_mutex_lock(&d->lock);
    }
    if (failure.code)
        d->failure = failure;
    d->job = NULL;
    d->ended = 1;
    pthread_cond_broadcast(&d->moved);
}

void *drain_thread(void *argument)
{
    struct drain *d = argument;
    pthread_mutex_lock(&d->lock);
    while (!d->stop) {
        if (d->first != d->next && d->entries[d->first % MAX_ENTRIES].ready)
            write_oldest(d);
        else if (d->first == d->next && d->job)
            drain_do_job(d);
        else
            pthread_cond_wait(&d->work, &d->lock);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}
