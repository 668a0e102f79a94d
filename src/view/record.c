/* Writing trial records. See record.h. */
#include "view/record.h"
#include "view/sys.h"
#include "view/text.h"

#include <errno.h>
#include <sys/uio.h>
#include <sys/utsname.h>

enum {
    SEEN = 16384
};

enum {
    CLOSED = 0,
    OPENING,
    OPEN
};

struct file_id {
    uint64_t ino, dev;
};

/* All of it is lost on purpose in a child of fork (MADV_WIPEONFORK). */
struct recorder {
    int state;
    int fd;
    struct file_id file; /* to notice that the program has taken the descriptor */
    uint64_t start_ns;
    char path[PATH_MAX];
    uint64_t seen[SEEN];
};

static const char *const recorded_env[] = {"LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME",
                                           "LD_PRELOAD", "VIRTUAL_ENV"};
static const char *const rank_env[] = {"PMIX_RANK", "PMI_RANK", "SLURM_PROCID",
                                       "OMPI_COMM_WORLD_RANK", "BRIGADE_RANK"};

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

/* Without asking the file system's server: a remote one would be asked at every record. */
static int identify(int fd, struct file_id *id)
{
    struct statx st;
    int err = (int)sys_call(SYS_statx, fd, (long)"", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO,
                            (long)&st, 0);
    if (err < 0)
        return err;
    id->ino = st.stx_ino;
    id->dev = (uint64_t)st.stx_dev_major << 32 | st.stx_dev_minor;
    return 0;
}

static int open_file(struct recorder *r)
{
    int fd = sys_open(r->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0)
        return fd;
    fd = move_up(fd);
    int err = identify(fd, &r->file);
    if (err < 0) {
        sys_close(fd);
        return err;
    }
    r->fd = fd;
    return 0;
}

/* Programs close descriptors they do not know, and reuse the numbers: look before writing. */
static int still_ours(const struct recorder *r)
{
    struct file_id now;
    return identify(r->fd, &now) == 0 && now.ino == r->file.ino && now.dev == r->file.dev;
}

static void write_record(const struct view *v, const char *kind, int64_t status, const char *by,
                         const char *path, const char *extra)
{
    struct recorder *r = v->recorder;
    char numbers[3][24];
    const char *fields[] = {kind, numbers[0], by, path, extra, numbers[1], numbers[2]};
    enum {
        FIELDS = sizeof fields / sizeof *fields
    };
    struct iovec pieces[FIELDS];
    struct text t = text_in(numbers[0], sizeof numbers[0]);
    text_signed(&t, status);
    t = text_in(numbers[1], sizeof numbers[1]);
    text_number(&t, sys_now_ns(CLOCK_REALTIME) - r->start_ns, 10);
    t = text_in(numbers[2], sizeof numbers[2]);
    text_number(&t, (uint64_t)sys_getpid(), 10);
    for (int i = 0; i < FIELDS; i++) {
        pieces[i].iov_base = (void *)fields[i];
        pieces[i].iov_len = strlen(fields[i]) + 1;
    }
    if (still_ours(r) || open_file(r) == 0)
        sys_call(SYS_writev, r->fd, (long)pieces, FIELDS, 0, 0, 0);
}

/* /proc/self/cmdline, arguments joined by U+001F. What does not fit is cut. */
static void write_argv(const struct view *v)
{
    char cwd[PATH_MAX], joined[2 * PATH_MAX];
    int count = 0, fd = sys_open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC, 0);
    long n = fd < 0 ? 0 : sys_read(fd, joined, sizeof joined - 1);
    if (fd >= 0)
        sys_close(fd);
    n = n < 0 ? 0 : n;
    for (long i = 0; i < n; i++) {
        if (joined[i] == '\0') {
            count++;
            joined[i] = i + 1 < n ? '\x1f' : '\0';
        }
    }
    joined[n] = '\0';
    if (sys_getcwd(cwd, sizeof cwd) < 0)
        cwd[0] = '\0';
    write_record(v, "argv", count, "", cwd, joined);
}

static void write_head(const struct view *v)
{
    char parent[16];
    const char *rank = NULL;
    struct text t = text_in(parent, sizeof parent);
    text_number(&t, (uint64_t)sys_getppid(), 10);
    for (size_t i = 0; !rank && i < sizeof rank_env / sizeof *rank_env; i++)
        rank = view_env(v, rank_env[i]);
    write_record(v, "process", sys_getpid(), parent, v->exe, rank ? rank : "");
    write_argv(v);
    for (size_t i = 0; i < sizeof recorded_env / sizeof *recorded_env; i++) {
        const char *value = view_env(v, recorded_env[i]);
        if (value)
            write_record(v, "env", 0, "", recorded_env[i], value);
    }
}

/* When the file of this process was begun: by the wrapper, or now. */
static uint64_t start_of_file(const struct view *v)
{
    const char *shared = view_env(v, BRG_RECORD_SHARED);
    char mine[16];
    struct text t = text_in(mine, sizeof mine);
    text_number(&t, (uint64_t)sys_getpid(), 10);
    text_add(&t, ".");
    int64_t start = shared && text_starts(shared, mine) ? text_to_number(shared + t.len, 0) : 0;
    return start ? (uint64_t)start : sys_now_ns(CLOCK_REALTIME);
}

/* Opens the file of this process if it is not open. Returns whether records can be written. A
 * signal handler that comes in between goes without. */
static int begin(const struct view *v, const char *folder, int with_head)
{
    struct recorder *r = v->recorder;
    int expected = CLOSED;
    if (__atomic_load_n(&r->state, __ATOMIC_ACQUIRE) == OPEN)
        return 1;
    if (!__atomic_compare_exchange_n(&r->state, &expected, OPENING, 0, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        return expected == OPEN;
    struct utsname host;
    memset(&host, 0, sizeof host);
    sys_call(SYS_uname, (long)&host, 0, 0, 0, 0, 0);
    r->start_ns = start_of_file(v);
    struct text t = text_in(r->path, sizeof r->path);
    text_add(&t, folder);
    text_add(&t, "/");
    text_add(&t, host.nodename);
    text_add(&t, ".");
    text_number(&t, (uint64_t)sys_getpid(), 10);
    text_add(&t, ".");
    text_number(&t, r->start_ns, 10);
    text_add(&t, ".rec");
    if (t.full || open_file(r) != 0) {
        __atomic_store_n(&r->state, CLOSED, __ATOMIC_RELEASE);
        return 0;
    }
    __atomic_store_n(&r->state, OPEN, __ATOMIC_RELEASE);
    if (with_head)
        write_head(v);
    return 1;
}

static void start(struct view *v, const char *folder, int with_head)
{
    struct recorder *r =
        sys_map(sizeof *r, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (!r)
        return;
    sys_call(SYS_madvise, (long)r, (long)((sizeof *r + 4095) & ~(size_t)4095), MADV_WIPEONFORK, 0,
             0, 0);
    v->recorder = r;
    if (begin(v, folder, with_head))
        v->mode = VIEW_RECORD;
}

void record_start(struct view *v, const char *folder)
{
    start(v, folder, 1);
}

void record_start_wrapper(struct view *v, const char *folder, uint64_t *start_ns)
{
    start(v, folder, 0);
    if (v->mode == VIEW_RECORD)
        *start_ns = v->recorder->start_ns;
}

/* Whether this record is new to the process, as far as the table remembers. */
static int is_new(struct recorder *r, const char *kind, int64_t status, const char *by,
                  const char *path, const char *extra)
{
    uint64_t h = brg_hash(kind, strlen(kind) + 1, BRG_HASH_SEED);
    h = brg_hash(&status, sizeof status, h);
    h = brg_hash(by, strlen(by) + 1, h);
    h = brg_hash(path, strlen(path) + 1, h);
    h = brg_hash(extra, strlen(extra) + 1, h) | 1;
    uint64_t *place = &r->seen[(h >> 20) % SEEN];
    return __atomic_exchange_n(place, h, __ATOMIC_RELAXED) != h;
}

void record_add(const struct view *v, const char *kind, int64_t status, const char *by,
                const char *path, const char *extra)
{
    if (v->mode != VIEW_RECORD || !begin(v, view_env(v, "BRIGADE_RECORD"), 1))
        return;
    by = by ? by : v->exe;
    if (is_new(v->recorder, kind, status, by, path, extra))
        write_record(v, kind, status, by, path, extra);
}

void record_lookup(const struct view *v, const char *kind, int err, int dirfd, const char *path,
                   const char *extra)
{
    char absolute[PATH_MAX];
    if (v->mode != VIEW_RECORD || !path || !path[0])
        return;
    if (path[0] != '/') {
        if (view_absolute(v, dirfd, path, absolute, sizeof absolute) != 0)
            return;
        path = absolute;
    }
    if (text_starts(path, "/proc/") || text_starts(path, "/sys/") || text_starts(path, "/dev/"))
        return;
    record_add(v, kind, err, NULL, path, extra);
}

void record_end(const struct view *v, int status)
{
    if (v->mode == VIEW_RECORD && __atomic_load_n(&v->recorder->state, __ATOMIC_ACQUIRE) == OPEN)
        write_record(v, "end", status, "", "", "");
}
