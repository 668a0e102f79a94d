/* See store.h: what of a file lies in this node's memory, and asking for what does not. */
#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>

#include "store/store_inside.h"

/* The kernel reads the byte if it need not wait for it. */
enum store_where store_where(struct io_store *s, uint64_t offset)
{
    char byte;
    struct iovec one = {.iov_base = &byte, .iov_len = 1};
    if (s->token.layout == IO_PARTS || store_need_file(s, NULL))
        return STORE_UNKNOWN;
    ssize_t got = preadv2(s->fd, &one, 1, (off_t)offset, RWF_NOWAIT);
    if (got >= 0)
        return STORE_IN_MEMORY;
    return errno == EAGAIN ? STORE_ON_DISK : STORE_UNKNOWN;
}

void store_ask_for(struct io_store *s, uint64_t bytes, uint64_t offset)
{
    if (s->fd >= 0)
        posix_fadvise(s->fd, (off_t)offset, (off_t)bytes, POSIX_FADV_WILLNEED);
}
