/* Writing records through mappings of their file. See journal.h. */
#include "view/journal.h"
#include "base/sys.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

enum {
    WINDOW = 64 << 10, /* a multiple of every page size */
    DIGITS = 8,
    BEAT_NS = 500 * 1000 * 1000
};

/* Lies behind its own window, in memory of the process. */
struct journal_window {
    struct journal_window *previous;
    char *at;
    uint64_t offset, size; /* in the file */
    uint64_t used;         /* atomic; may grow past size */
    int shared;            /* a mapping of the file */
};

static uint64_t round_up(uint64_t n, uint64_t unit)
{
    return (n + unit - 1) & ~(unit - 1);
}

/* ---- the descriptor ---- */

/* A high number, so that the program's own descriptors are what they would be without us. */
static int move_up(int fd)
{
    static const int floors[] = {900, 200, 60};
    for (size_t i = 0; i < sizeof floors / sizeof *floors; i++) {
        int high = sys_fcntl(fd, F_DUPFD_CLOEXEC, floors[i]);
        if (high >= 0) {
            sys_close(fd);
            return high;
        }
    }
    return fd;
}

/* Without asking the file system's server. */
static int identify(int fd, struct statx *st)
{
    return (int)sys_call(SYS_statx, fd, (long)"", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
                         STATX_INO | STATX_SIZE, (long)st, 0);
}

static uint64_t device(const struct statx *st)
{
    return (uint64_t)st->stx_dev_major << 32 | st->stx_dev_minor;
}

static int open_file(struct journal *j, struct statx *st)
{
    int fd = sys_open(j->path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return fd;
    fd = move_up(fd);
    int err = identify(fd, st);
    if (err < 0) {
        sys_close(fd);
        return err;
    }
    j->ino = st->stx_ino;
    j->dev = device(st);
    j->fd = fd;
    return 0;
}

/* The descriptor, opened again if the program has closed it or uses its number; or -errno. */
static int descriptor(struct journal *j)
{
    struct statx st;
    if (identify(j->fd, &st) == 0 && st.stx_ino == j->ino && device(&st) == j->dev)
        return j->fd;
    int err = open_file(j, &st);
    return err < 0 ? err : j->fd;
}

int journal_open(struct journal *j)
{
    struct statx st;
    int err = open_file(j, &st);
    if (err == 0)
        j->end = st.stx_size;
    return err;
}

/* ---- windows ---- */

static int write_at(int fd, const char *from, uint64_t n, uint64_t offset)
{
    return sys_call(SYS_pwrite64, fd, (long)from, (long)n, (long)offset, 0, 0) == (long)n;
}

/* A program may run under a limit that would send it a signal for our write. */
static int is_allowed(uint64_t end)
{
    struct rlimit limit;
    return sys_call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit, 0, 0) == 0 &&
           end <= limit.rlim_cur;
}

/* Makes the file reach `offset + size`, with room on the disk where the file system can promise it:
 * a mapping of a file that got none would end the program. */
static int extend(int fd, uint64_t offset, uint64_t size)
{
    if (!is_allowed(offset + size))
        return -EFBIG;
    long err = sys_call(SYS_fallocate, fd, 0, (long)offset, (long)size, 0, 0);
    if (err == 0 || err == -ENOSPC || err == -EDQUOT)
        return (int)err;
    return write_at(fd, "", 1, offset + size - 1) ? 0 : -EIO; /* which never shortens it */
}

static struct journal_window *map_window(int fd, uint64_t offset, uint64_t size)
{
    const int access = PROT_READ | PROT_WRITE;
    char *at = sys_map(size + WINDOW, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    if (!at)
        return NULL;
    struct journal_window *w = (struct journal_window *)(at + size);
    long mapped =
        sys_call(SYS_mmap, (long)at, (long)size, access, MAP_SHARED | MAP_FIXED, fd, (long)offset);
    if (mapped != (long)at && /* the attempt may have left a hole */
        sys_call(SYS_mmap, (long)at, (long)size, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                 -1, 0) != (long)at)
        return NULL;
    sys_call(SYS_madvise, (long)at, (long)(size + WINDOW), MADV_DONTFORK, 0, 0, 0);
    w->at = at;
    w->offset = offset;
    w->size = size;
    w->shared = mapped == (long)at;
    return w;
}

/* A window with room for `need` bytes in place of `full`, or the one that another thread made
 * meanwhile. NULL if the file cannot grow. */
static struct journal_window *next_window(struct journal *j, struct journal_window *full,
                                          uint64_t need)
{
    uint64_t size = round_up(need, WINDOW), offset;
    uint64_t end = __atomic_load_n(&j->end, __ATOMIC_RELAXED);
    int fd = descriptor(j);
    if (fd < 0)
        return NULL;
    do
        offset = round_up(end, WINDOW);
    while (!__atomic_compare_exchange_n(&j->end, &end, offset + size, 0, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
    if (extend(fd, offset, size) != 0)
        return NULL;
    struct journal_window *w = map_window(fd, offset, size);
    if (!w)
        return NULL;
    w->previous = full;
    if (!__atomic_compare_exchange_n(&j->window, &full, w, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        sys_unmap(w->at, size + WINDOW);
        return full;
    }
    __atomic_store_n(&j->beat_ns, sys_now_ns(CLOCK_MONOTONIC), __ATOMIC_RELAXED);
    return w;
}

/* `need` bytes of the file that are this caller's alone; NULL if there are none. */
static char *reserve(struct journal *j, uint64_t need, struct journal_window **in)
{
    struct journal_window *w = __atomic_load_n(&j->window, __ATOMIC_ACQUIRE);
    for (;;) {
        if (w) {
            uint64_t at = __atomic_fetch_add(&w->used, need, __ATOMIC_RELAXED);
            if (at + need <= w->size) {
                *in = w;
                return w->at + at;
            }
        }
        w = next_window(j, w, need);
        if (!w)
            return NULL;
    }
}

static void beat(struct journal *j)
{
    uint64_t now = sys_now_ns(CLOCK_MONOTONIC),
             last = __atomic_load_n(&j->beat_ns, __ATOMIC_RELAXED);
    if (now - last < BEAT_NS || !__atomic_compare_exchange_n(&j->beat_ns, &last, now, 0,
                                                             __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return;
    int fd = descriptor(j);
    uint64_t end = __atomic_fetch_add(&j->end, 1, __ATOMIC_RELAXED);
    if (fd >= 0 && is_allowed(end + 1))
        write_at(fd, "", 1, end);
}

/* ---- records ---- */

char *journal_add(struct journal *j, const char *const fields[JOURNAL_FIELDS])
{
    struct journal_window *w;
    size_t lengths[JOURNAL_FIELDS];
    uint64_t text = 0;
    for (int i = 0; i < JOURNAL_FIELDS; i++) {
        lengths[i] = strlen(fields[i]) + 1;
        text += lengths[i];
    }
    uint64_t digits = round_up(text, DIGITS); /* records begin at multiples of 8 */
    uint64_t whole = round_up(digits + DIGITS + 1, DIGITS);
    char *record = reserve(j, whole, &w), *to = record;
    if (!record)
        return NULL;
    for (int i = 0; i < JOURNAL_FIELDS; i++) {
        size_t skip = i == 0; /* the first byte of all */
        memcpy(to + skip, fields[i] + skip, lengths[i] - skip);
        to += lengths[i];
    }
    to[-1] = '*';
    memset(to, '0', (size_t)(digits + DIGITS - text));
    record[digits + DIGITS - 1] = '1';
    __atomic_store_n(record, fields[0][0], __ATOMIC_RELEASE);
    if (!w->shared) {
        int fd = descriptor(j);
        if (fd >= 0)
            write_at(fd, record, whole, w->offset + (uint64_t)(record - w->at));
    }
    beat(j);
    return record;
}

/* Adds one to a decimal number of eight digits; it stops at all nines. */
static void count_up(char *digits)
{
    uint64_t *word = (uint64_t *)(void *)digits;
    uint64_t old = __atomic_load_n(word, __ATOMIC_RELAXED), more;
    do {
        char text[DIGITS];
        int i = DIGITS - 1;
        memcpy(text, &old, sizeof text);
        while (i >= 0 && text[i] == '9')
            text[i--] = '0';
        if (i < 0)
            return;
        text[i]++;
        memcpy(&more, text, sizeof more);
    } while (!__atomic_compare_exchange_n(word, &old, more, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

int journal_repeat(char *record, const char *const fields[JOURNAL_FIELDS])
{
    char *at = record;
    for (int i = 0; i < JOURNAL_FIELDS; i++) {
        size_t n = strlen(at) + 1;
        if (i < JOURNAL_COMPARED && (strlen(fields[i]) + 1 != n || memcmp(at, fields[i], n) != 0))
            return 0;
        at += n;
    }
    count_up(at - 1 - DIGITS);
    return 1;
}

void journal_flush(struct journal *j)
{
    int fd = descriptor(j);
    struct journal_window *w = __atomic_load_n(&j->window, __ATOMIC_ACQUIRE);
    for (; fd >= 0 && w; w = w->previous) {
        uint64_t used = __atomic_load_n(&w->used, __ATOMIC_RELAXED);
        if (!w->shared)
            write_at(fd, w->at, used < w->size ? used : w->size, w->offset);
    }
}
