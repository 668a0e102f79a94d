/* Memory that the ranks of a node share, and waiting in it.
 *
 * It is a memfd of the node's leader, which the others open by /proc/PID/fd: it has no name that
 * could be left behind, takes memory only where it was touched, and what cannot be opened that way
 * is not on the same node. It holds a header, a cell for each rank, and `room` for one call's
 * windows.
 *
 * Waiting is for a counter to reach a value. It sleeps in the kernel; a rank that waits long looks
 * whether the others are alive. One that has died breaks the area for good: every wait returns
 * -EOWNERDEAD, and area_dead names the rank. The threads of a rank may wait at once. */
#ifndef BRG_IO_AREA_H
#define BRG_IO_AREA_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define AREA_VALUES 32
#define AREA_SHARE_BYTES 8192
#define AREA_PAGES 4
#define AREA_PAGE_BYTES 65536
/* All of a page that is touched, unless the byte AREA_PAGE_MORE of it is set. */
#define AREA_PAGE_FIRST 4096
#define AREA_PAGE_MORE (AREA_PAGE_FIRST - 2)

/* What a rank must know to open the area of its leader. */
struct area_token {
    uint64_t id; /* random; 0: there is none */
    int32_t pid, fd;
};

struct area_cell {
    _Alignas(64) int64_t values[AREA_VALUES];
    uint64_t started;    /* clock ticks, field 22 of /proc/PID/stat */
    _Atomic int32_t pid; /* 0 until the rank has opened the area */
};

/* Lies in the shared memory. Counters only grow, and wrap. */
struct area_head {
    uint64_t id;
    _Alignas(64) _Atomic uint32_t arrived;    /* at a meeting, over all meetings */
    _Alignas(64) _Atomic uint32_t generation; /* meetings that ended */
    _Alignas(64) _Atomic uint32_t bell;       /* something happened that the leader waits for */
    _Alignas(64) _Atomic uint32_t emptied;    /* boxes, so often: carry.h */
    _Alignas(64) _Atomic uint32_t dead;       /* local rank + 1, 0: all live */
    _Atomic uint32_t dead_elsewhere;          /* rank of the world + 1 that died on another node */
    _Atomic int32_t code;                     /* -errno that broke the area otherwise, or 0 */
    int64_t result[AREA_VALUES];
    char share[2][AREA_SHARE_BYTES];
    char pages[AREA_PAGES][AREA_PAGE_BYTES]; /* for whoever uses the area, by agreement */
    struct area_cell cells[];
};

struct io_area {
    struct area_head *head;
    char *room; /* aligned to a page */
    size_t room_bytes, mapped_bytes;
    uint32_t local, n_local;
    _Atomic uint32_t looked; /* the peer that was looked at last */
    unsigned spins;          /* looks at a counter before sleeping */
    int yields;              /* others run for a while, before it sleeps: set by who opened it */
    int fd;                  /* of the leader, until all have it; or -1 */
    size_t had;              /* bytes of the room that area_have has seen to */

    /* Called now and then by who waits long, unless NULL: what the program left under way in MPI
     * goes on. Not by threads that said area_is_aside. */
    int (*tick)(void *context); /* 1: there is more to do soon */
    void *tick_context;
};

/* Makes an area for n_local ranks, the caller being the first. -errno where there is no memory. */
int area_create(uint32_t n_local, size_t room_bytes, struct io_area **area,
                struct area_token *token);
/* Opens the leader's, as number `local`. -errno where it cannot be reached. */
int area_open(const struct area_token *token, uint32_t local, uint32_t n_local, size_t room_bytes,
              struct io_area **area);
/* The leader, once all have opened it. */
void area_seal(struct io_area *area);
void area_destroy(struct io_area *area);

/* The first `bytes` of the room are about to be touched by all ranks of the node: each takes its
 * share of the pages from the kernel, and all into its tables, many at a time. Touching alone costs
 * every rank a fault a page: 1.5 us, and 2.9 where the page is new, instead of 0.4 and 2.2 (kernel
 * 6.18, a virtual machine). Where the kernel cannot (before 5.14), touching does it. */
void area_have(struct io_area *area, size_t bytes);

/* Waits until *counter has reached `value`. 0, -EOWNERDEAD, or the area's code. */
int area_wait(struct io_area *area, _Atomic uint32_t *counter, uint32_t value);
/* The same; -ECANCELED once *cancel is not 0. Whoever sets it should wake the counters. */
int area_wait_unless(struct io_area *area, _Atomic uint32_t *counter, uint32_t value,
                     _Atomic uint32_t *cancel);
static inline int area_reached(_Atomic uint32_t *counter, uint32_t value)
{
    return (int32_t)(atomic_load_explicit(counter, memory_order_acquire) - value) >= 0;
}
/* The calling thread is not the one that may call MPI. */
void area_is_aside(void);

/* Adds to a counter, or sets it, and wakes who waits for it. */
uint32_t area_add(_Atomic uint32_t *counter, uint32_t n);
void area_set(_Atomic uint32_t *counter, uint32_t value);
void area_wake(_Atomic uint32_t *counter);

/* Sleeps until *counter is no longer `seen`, at most `ns`. */
void area_doze(_Atomic uint32_t *counter, uint32_t seen, uint64_t ns);

/* Looks at some other ranks, at others each time. Who has died after *counter (may be NULL) reached
 * `value` does not matter. 0, -EOWNERDEAD, or the area's code. */
int area_look(struct io_area *area, _Atomic uint32_t *counter, uint32_t value);
/* What broke it, 0 if it is whole. */
int area_broken(const struct io_area *area);

#endif
