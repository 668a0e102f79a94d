/* Bytes between the program's memory and blocks. What the program names may not be there: then the
 * copy fails as the kernel's would, and the call is left to the kernel. */
#ifndef BRG_BUFFER_COPY_H
#define BRG_BUFFER_COPY_H

#include "buffer/signals.h"

#include <string.h>
#include <sys/uio.h>

struct cursor {
    const struct iovec *iov;
    int n;
    size_t at; /* in iov[0] */
};

/* Bytes of all pieces; 0 for what the kernel would refuse, so that it is asked. */
static inline uint64_t cursor_bytes(const struct iovec *iov, int n)
{
    uint64_t total = 0;
    if (n == 1)
        return iov->iov_len > INT32_MAX ? 0 : iov->iov_len;
    if (n < 0 || n > 1024)
        return 0;
    for (int i = 0; i < n; i++) {
        if (iov[i].iov_len > INT32_MAX)
            return 0;
        total += iov[i].iov_len;
    }
    return total > INT32_MAX ? 0 : total;
}

/* What is left, as pieces; at most `room`. */
static inline int cursor_rest(const struct cursor *c, struct iovec *to, int room)
{
    int n = 0;
    for (; n < c->n && n < room; n++) {
        to[n] = c->iov[n];
        if (n == 0) {
            to[0].iov_base = (char *)to[0].iov_base + c->at;
            to[0].iov_len -= c->at;
        }
    }
    return n;
}

static __attribute__((noinline, unused)) void copy_pieces(char *block, struct cursor *c, size_t n,
                                                          int in)
{
    while (n) {
        size_t have = c->iov->iov_len - c->at, now = n < have ? n : have;
        char *theirs = (char *)c->iov->iov_base + c->at;
        if (in)
            memcpy(block, theirs, now);
        else
            memcpy(theirs, block, now);
        block += now;
        n -= now;
        c->at += now;
        if (c->at == c->iov->iov_len && n) {
            c->iov++;
            c->n--;
            c->at = 0;
        }
    }
}

/* Moves n bytes, which the cursor has; `in`: from the program. 0, or -1 and nothing moved. */
static __attribute__((noinline, unused)) int copy_bytes(char *block, struct cursor *c, size_t n,
                                                        int in)
{
    struct cursor saved = *c;
    if (guard_set()) {
        *c = saved;
        return -1;
    }
    copy_pieces(block, c, n, in);
    guard_clear();
    return 0;
}
#define copy_in(block, c, n) copy_bytes(block, c, n, 1)
#define copy_out(block, c, n) copy_bytes(block, c, n, 0)

#endif
