/* See store.h: what of a file lies in this node's memory, and asking for what does not. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "store/store_inside.h"

static int is_memory(int fd)
{
    struct statfs fs;
    return fstatfs(fd, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

/* Nothing is read by asking; a file that is another's, and may not be written, is said to be there.
 * Of what lies behind the end too nobody waits for a disk. */
static enum store_where look(int fd, uint64_t offset)
{
    unsigned char there = 1;
    struct stat st;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    off_t at = (off_t)(offset / page * page);
    void *map = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, at);
    if (map == MAP_FAILED)
        return STORE_UNKNOWN;
    int rc = mincore(map, page, &there);
    munmap(map, page);
    if (rc)
        return STORE_UNKNOWN;
    int ends = !(there & 1) && fstat(fd, &st) == 0 && (uint64_t)st.st_size <= offset;
    return there & 1 || ends ? STORE_IN_MEMORY : STORE_ON_DISK;
}

/* The kernel reads the byte if it need not wait for it, and begins to otherwise. Not all file
 * systems can say so. */
int store_need_not_wait(int fd, uint64_t offset)
{
    char byte;
    struct iovec one = {.iov_base = &byte, .iov_len = 1};
    return preadv2(fd, &one, 1, (off_t)offset, RWF_NOWAIT) >= 0 ? 0 : -errno;
}

enum store_where store_where(struct io_store *s, uint64_t offset)
{
    if (s->token.layout == IO_PARTS || store_need_file(s, NULL))
        return STORE_UNKNOWN;
    if (s->token.one_stream) /* in which nobody should begin */
        return look(s->fd, offset);
    int rc = store_need_not_wait(s->fd, offset);
    if (rc == 0 || rc == -EAGAIN)
        return rc ? STORE_ON_DISK : STORE_IN_MEMORY;
    return is_memory(s->fd) ? STORE_IN_MEMORY : STORE_UNKNOWN;
}

void store_ask_for(struct io_store *s, uint64_t bytes, uint64_t offset)
{
    if (s->fd >= 0)
        posix_fadvise(s->fd, (off_t)offset, (off_t)bytes, POSIX_FADV_WILLNEED);
}
