/* See area.h. */
#include "world/area.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/newer.h"

#define SLEEP_NS 20000000L
#define SOON_NS 200000L
#define LOOK_NS 60000000L /* whether others live */
#define SPINS 400u        /* some microseconds */
#define YIELD_NS UINT64_C(200000)
#define LOOKS 8u /* at other ranks, each time; few, as there may be hundreds that look */

/* ---- making one ---- */

/* Field 22 of /proc/PID/stat, or 0: a number that a later process of this id does not have. */
static uint64_t started_at(int32_t pid, char *state)
{
    char path[64], text[1024];
    unsigned long long ticks = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    const char *rest = strrchr(text, ')');
    *state = rest && rest[1] ? rest[2] : '?';
    for (int field = 2; rest && field < 22; field++)
        rest = strchr(rest + 1, ' ');
    return rest && sscanf(rest, " %llu", &ticks) == 1 ? ticks : 0;
}

static size_t head_bytes(uint32_t n_local)
{
    size_t bytes = sizeof(struct area_head) + n_local * sizeof(struct area_cell);
    return (bytes + 4095) & ~(size_t)4095;
}

/* Ranks that outnumber their cores would spin away the time of the one that they wait for. */
static unsigned spins_of(uint32_t n_local)
{
    cpu_set_t set;
    int cores = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return (uint32_t)cores >= n_local || (cores == 1 && online >= (long)n_local) ? SPINS : 0;
}

static int map(int fd, uint32_t local, uint32_t n_local, size_t room_bytes, struct io_area **out)
{
    char state;
    struct io_area *area = calloc(1, sizeof *area);
    if (!area)
        return -ENOMEM;
    *area = (struct io_area){.room_bytes = room_bytes,
                             .mapped_bytes = head_bytes(n_local) + room_bytes,
                             .local = local,
                             .n_local = n_local,
                             .looked = local,
                             .spins = spins_of(n_local),
                             .fd = -1};
    int flags = MAP_SHARED | MAP_NORESERVE | (fd < 0 ? MAP_ANONYMOUS : 0);
    void *at = mmap(NULL, area->mapped_bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (at == MAP_FAILED) {
        free(area);
        return -errno;
    }
    area->head = at;
    area->room = (char *)at + head_bytes(n_local);
    area->head->cells[local].started = started_at((int32_t)getpid(), &state);
    atomic_store_explicit(&area->head->cells[local].pid, (int32_t)getpid(), memory_order_release);
    *out = area;
    return 0;
}

/* Memory that has a descriptor is a file: past the process's limit, SIGXFSZ would end it. */
static int resize(int fd, size_t bytes)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes > limit.rlim_cur)
        return -EFBIG;
    return ftruncate(fd, (off_t)bytes) ? -errno : 0;
}

int area_create(uint32_t n_local, size_t room_bytes, struct io_area **out, struct area_token *token)
{
    int fd = -1, rc;
    *token = (struct area_token){.pid = (int32_t)getpid(), .fd = -1};
    if (getrandom(&token->id, sizeof token->id, 0) != sizeof token->id)
        return -EIO;
    token->id |= 1;
    if (n_local > 1) {
        fd = memfd_create("brigade-io", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
        if (fd < 0 && errno == EINVAL) /* a kernel before 6.3 */
            fd = memfd_create("brigade-io", MFD_CLOEXEC);
        rc = fd < 0 ? -errno : resize(fd, head_bytes(n_local) + room_bytes);
        if (rc) {
            if (fd >= 0)
                close(fd);
            return rc;
        }
    }
    rc = map(fd, 0, n_local, room_bytes, out);
    if (rc) {
        if (fd >= 0)
            close(fd);
        return rc;
    }
    (*out)->head->id = token->id;
    (*out)->fd = token->fd = fd;
    return 0;
}

int area_open(const struct area_token *token, uint32_t local, uint32_t n_local, size_t room_bytes,
              struct io_area **out)
{
    char path[64];
    struct stat st;
    uint64_t id = 0;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", token->pid, token->fd);
    int fd = open(path, O_RDWR | O_CLOEXEC), rc = 0;
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) || (size_t)st.st_size != head_bytes(n_local) + room_bytes ||
        pread(fd, &id, sizeof id, offsetof(struct area_head, id)) != sizeof id || id != token->id)
        rc = -ESTALE; /* a process of the same number, but on another node */
    if (!rc)
        rc = map(fd, local, n_local, room_bytes, out);
    close(fd);
    return rc;
}

void area_have(struct io_area *area, size_t bytes)
{
    size_t page = 4096, from = area->had / page, end = (bytes + page - 1) / page;
    if (bytes <= area->had)
        return;
    size_t first = from + (end - from) * area->local / area->n_local;
    size_t last = from + (end - from) * (area->local + 1) / area->n_local;
    (void)madvise(area->room + first * page, (last - first) * page, MADV_POPULATE_WRITE);
    (void)madvise(area->room + from * page, (end - from) * page, MADV_POPULATE_READ);
    area->had = end * page;
}

void area_seal(struct io_area *area)
{
    if (area->fd >= 0)
        close(area->fd);
    area->fd = -1;
}

void area_destroy(struct io_area *area)
{
    if (!area)
        return;
    area_seal(area);
    munmap(area->head, area->mapped_bytes);
    free(area);
}

/* ---- who lives ---- */

static int is_dead(const struct area_cell *cell)
{
    char state = '?';
    int32_t pid = atomic_load_explicit(&cell->pid, memory_order_acquire);
    if (!pid)
        return 0;
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0 && errno == ESRCH)
        return 1;
    if (fd >= 0) {
        struct pollfd look = {.fd = fd, .events = POLLIN};
        int ended = poll(&look, 1, 0) == 1;
        close(fd);
        if (ended)
            return 1;
    }
    uint64_t started = started_at(pid, &state);
    if (!started)
        return fd < 0 && cell->started != 0; /* no /proc: then pidfd has said it */
    return (cell->started && started != cell->started) || state == 'Z' || state == 'X';
}

int area_broken(const struct io_area *area)
{
    const struct area_head *head = area->head;
    if (atomic_load_explicit(&head->dead, memory_order_acquire) ||
        atomic_load_explicit(&head->dead_elsewhere, memory_order_acquire))
        return -EOWNERDEAD;
    return atomic_load_explicit(&head->code, memory_order_acquire);
}

/* A rank may end in good order as soon as it was let go: what it did last counts before its death
 * does. */
int area_look(struct io_area *area, _Atomic uint32_t *counter, uint32_t value)
{
    uint32_t peer = atomic_load_explicit(&area->looked, memory_order_relaxed);
    for (uint32_t i = 0; i < LOOKS && i + 1 < area->n_local && !area_broken(area); i++) {
        peer = (peer + 1) % area->n_local;
        if (peer == area->local || !is_dead(&area->head->cells[peer]))
            continue;
        if (counter && area_reached(counter, value))
            return 0;
        uint32_t nobody = 0;
        atomic_compare_exchange_strong(&area->head->dead, &nobody, peer + 1);
    }
    atomic_store_explicit(&area->looked, peer, memory_order_relaxed);
    return area_broken(area);
}

/* ---- waiting ---- */

static _Thread_local int aside;

void area_is_aside(void)
{
    aside = 1;
}

static long futex(_Atomic uint32_t *word, int op, uint32_t value, const struct timespec *limit)
{
    return syscall(SYS_futex, word, op, value, limit, NULL, 0);
}

void area_doze(_Atomic uint32_t *counter, uint32_t seen, uint64_t ns)
{
    struct timespec limit = {.tv_sec = (time_t)(ns / 1000000000u),
                             .tv_nsec = (long)(ns % 1000000000u)};
    futex(counter, FUTEX_WAIT, seen, &limit);
}

/* Where nobody waits for a message, most waits are shorter than it takes to fall asleep and to be
 * woken: that long others run. Not a thread beside the program's, which may compute meanwhile. */
static int is_soon(const struct io_area *area, _Atomic uint32_t *counter, uint32_t value)
{
    for (unsigned i = 0; i < area->spins; i++) {
        if (area_reached(counter, value))
            return 1;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    if (aside || !area->yields)
        return 0;
    for (uint64_t began = brg_clock_ns(); brg_clock_ns() - began < YIELD_NS; sched_yield())
        if (area_reached(counter, value))
            return 1;
    return 0;
}

int area_wait(struct io_area *area, _Atomic uint32_t *counter, uint32_t value)
{
    return area_wait_unless(area, counter, value, NULL);
}

int area_wait_unless(struct io_area *area, _Atomic uint32_t *counter, uint32_t value,
                     _Atomic uint32_t *cancel)
{
    long nap = SLEEP_NS, unlooked = 0;
    if (is_soon(area, counter, value))
        return 0;
    for (;;) {
        uint32_t seen = atomic_load_explicit(counter, memory_order_acquire);
        if ((int32_t)(seen - value) >= 0)
            return 0;
        int rc = area_broken(area);
        if (!rc && cancel && atomic_load_explicit(cancel, memory_order_relaxed))
            rc = -ECANCELED;
        if (rc)
            return rc;
        struct timespec limit = {.tv_nsec = nap};
        if (futex(counter, FUTEX_WAIT, seen, &limit) == 0 || errno != ETIMEDOUT)
            continue;
        unlooked += nap;
        if (unlooked >= LOOK_NS) {
            area_look(area, counter, value);
            unlooked = 0;
        }
        nap = area->tick && !aside && area->tick(area->tick_context) ? SOON_NS : SLEEP_NS;
    }
}

uint32_t area_add(_Atomic uint32_t *counter, uint32_t n)
{
    uint32_t before = atomic_fetch_add_explicit(counter, n, memory_order_acq_rel);
    futex(counter, FUTEX_WAKE, INT_MAX, NULL);
    return before + n;
}

void area_set(_Atomic uint32_t *counter, uint32_t value)
{
    atomic_store_explicit(counter, value, memory_order_release);
    futex(counter, FUTEX_WAKE, INT_MAX, NULL);
}

void area_wake(_Atomic uint32_t *counter)
{
    futex(counter, FUTEX_WAKE, INT_MAX, NULL);
}
