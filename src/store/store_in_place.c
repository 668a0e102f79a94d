/* Of a file in place (store.h): how long it is, making it longer or shorter at once, and holding
 * bytes of it. And of any: syncing, also what was written before it was let go of. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/store_inside.h"
#include "store/store_io.h"

int store_resize(struct io_store *s, uint64_t size, struct brg_error *err)
{
    int rc = store_need_file(s, err);
    if (rc)
        return rc;
    rc = store_io_resize(s->fd, size);
    return rc ? store_failed(err, rc, s->token.path, (int64_t)size, "set the size of") : 0;
}

int store_size(struct io_store *s, uint64_t *size, struct brg_error *err)
{
    struct stat st;
    int rc = store_need_file(s, err);
    if (rc)
        return rc;
    rc = store_io_stat(s->fd, NULL, &st);
    if (rc)
        return store_failed(err, rc, s->token.path, -1, "find the size of");
    *size = (uint64_t)st.st_size;
    return 0;
}

int store_sync(struct io_store *s, struct brg_error *err)
{
    int rc = store_descriptor(s) < 0 && s->written ? store_need_file(s, err) : 0;
    if (rc)
        return rc;
    int fd = s->kept >= 0 ? s->kept : s->fd;
    rc = fd < 0 ? 0 : store_io_sync(fd);
    if (rc)
        return store_failed(err, rc, s->token.path, -1, "sync");
    store_synced(s);
    return 0;
}

/* Whether a process syncs is told by the last file that it wrote much to. Who never does has the
 * kernel send bytes when it wants to. */
static atomic_int syncs;

int store_will_sync(void)
{
    return atomic_load_explicit(&syncs, memory_order_relaxed);
}

void store_synced(struct io_store *s)
{
    if (atomic_exchange(&s->unsynced, 0) >= STORE_START_BYTES)
        atomic_store_explicit(&syncs, 1, memory_order_relaxed);
    if (store_in_place(&s->token))
        return;
    s->written = 0;
    if (s->kept >= 0)
        close(s->kept);
    s->kept = -1;
}

void store_leave_unsynced(struct io_store *s)
{
    if (atomic_load(&s->unsynced) >= STORE_START_BYTES)
        atomic_store_explicit(&syncs, 0, memory_order_relaxed);
}

int store_descriptor(const struct io_store *s)
{
    return s->fd >= 0 ? s->fd : s->kept;
}

void store_keep(struct io_store *s)
{
    if (s->kept < 0)
        s->kept = fcntl(s->fd, F_DUPFD_CLOEXEC, 0);
}

/* Where its mode has changed since, the kept one itself, which may have older bytes in memory. */
int store_open_kept(const struct io_store *s, int flags)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", s->kept);
    int fd = store_io_open(path, flags, 0);
    return fd < 0 ? store_io_again(s->kept) : fd;
}

/* Of the descriptor, not of the process: another descriptor of this process for the same file does
 * not end it when it is closed. */
static int lock(int fd, short type, size_t bytes, uint64_t offset)
{
    struct flock range = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)offset, .l_len = (off_t)bytes};
    int rc;
    do
        rc = fcntl(fd, F_OFD_SETLKW, &range);
    while (rc && errno == EINTR);
    return rc ? -errno : 0;
}

int store_hold(struct io_store *s, size_t bytes, uint64_t offset)
{
    int in_place = s->token.flags & STORE_IN_PLACE, rc = in_place ? store_need_file(s, NULL) : 0;
    return rc || !in_place ? rc : lock(s->fd, F_WRLCK, bytes, offset);
}

void store_release(struct io_store *s, size_t bytes, uint64_t offset)
{
    if (s->token.flags & STORE_IN_PLACE)
        lock(s->fd, F_UNLCK, bytes, offset);
}
