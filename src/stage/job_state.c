/* See job_state.h. */
#include "stage/job_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/root.h"
#include "stage/alive.h"
#include "stage/devices.h"
#include "view/state.h"

#define STATE "state"

static int is_usable(const struct brg_state *s, uint64_t bytes)
{
    return bytes >= sizeof *s && s->magic == BRG_STATE_MAGIC && s->version == BRG_STATE_VERSION &&
           s->bytes <= bytes && s->bytes == brg_state_bytes(s->n_entries);
}

/* Sets the bits of the entries that have changed. Ranks may be setting others. */
static int mark_changed(int fd, const struct folder_job *job)
{
    struct stat st;
    if (!job->n_changed)
        return 0;
    if (fstat(fd, &st))
        return -errno;
    size_t bytes = (size_t)st.st_size;
    if (bytes < sizeof(struct brg_state)) /* as of one that was killed while it made it */
        return 0;
    struct brg_state *s = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (s == MAP_FAILED)
        return -errno;
    int is_sound = is_usable(s, bytes); /* ranks use no other one */
    for (size_t i = 0; is_sound && i < job->n_changed; i++) {
        uint32_t entry = job->changed[i];
        if (entry < s->n_entries)
            __atomic_fetch_or(&brg_state_dirty(s)[entry / 64], UINT64_C(1) << entry % 64,
                              __ATOMIC_RELAXED);
    }
    if (is_sound)
        __atomic_fetch_or(&s->dirty_any, 1, __ATOMIC_RELAXED);
    munmap(s, bytes);
    return 0;
}

static int is_left_over(int fd, const struct folder_job *job)
{
    char tail[256];
    struct stat st;
    snprintf(tail, sizeof tail, "jobs/%s/" STATE, job->name);
    return fstat(fd, &st) == 0 && alive_is_older(&st.st_mtim) && !alive_user_of(fd, tail);
}

/* Of a state that is there: *gone if it has been taken away, for a new one. */
static int adopt(int job_fd, const struct folder_job *job, int *gone)
{
    int rc = 0, fd = openat(job_fd, STATE, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    *gone = is_left_over(fd, job);
    if (!*gone)
        rc = mark_changed(fd, job);
    else if (unlinkat(job_fd, STATE, 0))
        rc = -errno;
    close(fd);
    return rc;
}

/* All its pages are allocated now: later, a rank that touches one without memory would die. */
static int fill(int fd, int staged_fd, uint32_t n_entries, const struct folder_job *job)
{
    struct brg_state head;
    int rc = -posix_fallocate(fd, 0, (off_t)brg_state_bytes(n_entries));
    memset(&head, 0, sizeof head);
    brg_state_init(&head, n_entries);
    root_here(&head.home); /* what cannot be told is zero */
    head.n_devices = devices_of_staged(staged_fd, head.devices);
    if (!rc)
        rc = brg_io_pwrite(fd, &head, sizeof head, 0, NULL);
    return rc ? rc : mark_changed(fd, job);
}

int job_state_create(int staged_fd, int job_fd, uint32_t n_entries, const struct folder_job *job)
{
    const int how = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int gone = 0, fd = openat(job_fd, STATE, how, 0600);
    if (fd < 0 && errno == EEXIST) {
        int rc = adopt(job_fd, job, &gone);
        if (rc || !gone)
            return rc;
        fd = openat(job_fd, STATE, how, 0600);
    }
    if (fd < 0)
        return -errno;
    int rc = fill(fd, staged_fd, n_entries, job);
    close(fd);
    return rc;
}
