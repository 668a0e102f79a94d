/* The seam between what is passed on and what carries it: MPI, threads of one process (tests),
 * or nothing at all (one node).
 *
 * Every call returns at once; a request is done when `test` says so. All calls are made by one
 * thread. Collective calls are started in the same order on every rank. Buffers stay untouched
 * until their request is done. All return 0 or -errno.
 */
#ifndef BRG_STREAM_NET_H
#define BRG_STREAM_NET_H

#include <stddef.h>
#include <stdint.h>

#define STREAM_ANY UINT32_MAX /* receive: from whoever sends; the message says who it was */

struct stream_request {
    union {
        void *pointer;
        int number;
        uint64_t word;
    } handle; /* the carrier's own */
    int active;
};

struct stream_net {
    uint32_t rank, size;
    int (*send)(struct stream_net *net, const void *buf, size_t bytes, uint32_t to, int tag,
                struct stream_request *request);
    /* The same, but it is not done before the receiver has asked for it: nothing piles up there. */
    int (*send_matched)(struct stream_net *net, const void *buf, size_t bytes, uint32_t to, int tag,
                        struct stream_request *request);
    /* `bytes` is room: a shorter message is fine. Messages of one sender and tag come in order. */
    int (*receive)(struct stream_net *net, void *buf, size_t bytes, uint32_t from, int tag,
                   struct stream_request *request);
    int (*test)(struct stream_net *net, struct stream_request *request, int *done);
    /* Collective. The bytes of `root` arrive in everybody's buf. */
    int (*broadcast)(struct stream_net *net, void *buf, size_t bytes, uint32_t root,
                     struct stream_request *request);
    /* Collective. least[i] becomes the smallest mine[i] of all ranks. */
    int (*minimum)(struct stream_net *net, const int64_t *mine, int64_t *least, int n,
                   struct stream_request *request);
    /* Collective. Rank 0 gets everybody's `bytes` bytes, in order, in all (NULL elsewhere). */
    int (*gather)(struct stream_net *net, const void *mine, size_t bytes, void *all,
                  struct stream_request *request);
    /* Ends every process of the job as soon as possible; may return if that takes a moment. */
    void (*abort)(struct stream_net *net, int code);
    /* Collective. Nothing may be under way. */
    void (*finish)(struct stream_net *net);
};

#endif
