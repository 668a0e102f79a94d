/* Writing trial records. See record.h. */
#include "view/record.h"
#include "view/journal.h"
#include "base/sys.h"
#include "base/text.h"

#include <errno.h>
#include <sys/utsname.h>

enum {
    SEEN = 1 << 16, /* places of the table */
    TRIED = 4,      /* places that a record may take */
    NAMES = 4 << 20 /* bytes of modules' names */
};

enum {
    CLOSED = 0,
    OPENING,
    OPEN
};

/* All of it is lost on purpose in a child of fork (MADV_WIPEONFORK). */
struct recorder {
    int state;
    uint64_t start_ns;
    struct journal journal;
    char *seen[SEEN]; /* records that this process has written */
    int pid;
    int watches;      /* what modules do is recorded, too */
    char *importing;  /* atomic; the name of the innermost module that is being imported, or NULL */
    char *names;      /* names that `importing` has pointed to, which stay */
    uint64_t n_names; /* bytes; atomic */
    uint64_t processors; /* that this process may use, when that was told last: a digest, or 0 */
};

static const char *const recorded_env[] = {"LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME",
                                           "LD_PRELOAD", "VIRTUAL_ENV"};
/* As brigade-rank asks them. */
static const char *const rank_env[] = {"BRIGADE_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID",
                                       "OMPI_COMM_WORLD_RANK"};

/* A record's fields as text. */
struct entry {
    char status[24], time_ns[24], pid[16];
    const char *fields[JOURNAL_FIELDS];
};

static void fill(const struct view *v, struct entry *e, const char *kind, int64_t status,
                 const char *by, const char *path, const char *extra)
{
    struct text t = text_in(e->status, sizeof e->status);
    text_signed(&t, status);
    t = text_in(e->time_ns, sizeof e->time_ns);
    text_number(&t, sys_now_ns(CLOCK_REALTIME) - v->recorder->start_ns, 10);
    t = text_in(e->pid, sizeof e->pid);
    text_number(&t, (uint64_t)sys_getpid(), 10);
    const char *fields[] = {kind, e->status, by, path, extra, e->time_ns, e->pid};
    memcpy(e->fields, fields, sizeof fields);
}

static void write_record(const struct view *v, const char *kind, int64_t status, const char *by,
                         const char *path, const char *extra)
{
    struct entry e;
    fill(v, &e, kind, status, by, path, extra);
    journal_add(&v->recorder->journal, e.fields);
}

/* /proc/self/cmdline, arguments joined by U+001F. What does not fit is cut. */
static void write_argv(const struct view *v)
{
    char cwd[PATH_MAX], joined[2 * PATH_MAX];
    int count = 0;
    long n = sys_read_text("/proc/self/cmdline", joined, sizeof joined);
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

/* Which variables there are, and what tells whether two ranks have the same value: 32 bits of a
 * salted hash, from which no value can be read. */
static void write_digests(const struct view *v, const char *salt)
{
    uint64_t seed = brg_hash(salt, strlen(salt) + 1, BRG_HASH_SEED);
    for (const char *p = v->env; p && p < v->env + v->env_bytes; p += strlen(p) + 1) {
        char name[256], digest[16];
        const char *value = p;
        while (*value && *value != '=')
            value++;
        if (!*value || text_starts(p, "BRIGADE_SAVED_"))
            continue;
        struct text t = text_in(name, sizeof name);
        text_bytes(&t, p, (size_t)(value - p));
        if (t.full)
            continue;
        t = text_in(digest, sizeof digest);
        text_number(&t, brg_hash(value, strlen(value), seed) >> 32, 10);
        write_record(v, "digest", 0, "", name, digest);
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
    r->pid = sys_getpid();
    struct text t = text_in(r->journal.path, sizeof r->journal.path);
    text_add(&t, folder);
    text_add(&t, "/");
    text_add(&t, host.nodename);
    text_add(&t, ".");
    text_number(&t, (uint64_t)sys_getpid(), 10);
    text_add(&t, ".");
    text_number(&t, r->start_ns, 10);
    text_add(&t, ".rec");
    if (t.full || journal_open(&r->journal) != 0) {
        __atomic_store_n(&r->state, CLOSED, __ATOMIC_RELEASE);
        return 0;
    }
    __atomic_store_n(&r->state, OPEN, __ATOMIC_RELEASE);
    if (with_head)
        write_head(v);
    return 1;
}

/* Only for a process that was started so: a child of fork forgets it. */
static void start_watching(const struct view *v)
{
    const char *salt = view_env(v, BRG_RECORD_FORK);
    if (!salt)
        return;
    v->recorder->names =
        sys_map(NAMES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    v->recorder->watches = 1;
    write_digests(v, salt);
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
    if (v->mode == VIEW_RECORD)
        start_watching(v);
}

void record_start_wrapper(struct view *v, const char *folder, uint64_t *start_ns)
{
    start(v, folder, 0);
    if (v->mode == VIEW_RECORD)
        *start_ns = v->recorder->start_ns;
}

/* Where the table may hold a record; the rest of it follows. */
static size_t first_place(const char *const fields[JOURNAL_FIELDS])
{
    uint64_t h = BRG_HASH_SEED;
    for (int i = 0; i < JOURNAL_COMPARED; i++)
        h = brg_hash(fields[i], strlen(fields[i]) + 1, h);
    return (size_t)((h >> 20) % SEEN);
}

void record_add(const struct view *v, const char *kind, int64_t status, const char *by,
                const char *path, const char *extra)
{
    if (v->mode != VIEW_RECORD || v->away || !begin(v, view_env(v, "BRIGADE_RECORD"), 1))
        return;
    by = by ? by : v->exe;
    struct entry e;
    fill(v, &e, kind, status, by, path, extra);
    char **seen = v->recorder->seen;
    size_t first = first_place(e.fields), empty = first;
    for (size_t i = 0; i < TRIED; i++) {
        size_t place = (first + i) % SEEN;
        char *record = __atomic_load_n(&seen[place], __ATOMIC_ACQUIRE);
        if (!record) {
            empty = place;
            break;
        }
        if (journal_repeat(record, e.fields))
            return;
    }
    /* Threads may do so together, and a full table forgets: counts of equal records add up. */
    char *record = journal_add(&v->recorder->journal, e.fields);
    if (record)
        __atomic_store_n(&seen[empty], record, __ATOMIC_RELEASE);
}

/* ---- what modules do ---- */

void record_event(const struct view *v, const char *what, const char *detail)
{
    record_event_of(v, record_importing(v), what, detail);
}

void record_event_of(const struct view *v, const char *by, const char *what, const char *detail)
{
    if (v->mode == VIEW_RECORD && v->recorder->watches)
        record_add(v, "event", 0, by, what, detail);
}

const char *record_importing(const struct view *v)
{
    const char *name =
        v->mode == VIEW_RECORD ? __atomic_load_n(&v->recorder->importing, __ATOMIC_ACQUIRE) : NULL;
    return name ? name : "";
}

/* A name for which there is no room is none: then what happens counts as the program's own doing,
 * after which nothing is believed. */
static void set_importing(struct recorder *r, const char *name)
{
    size_t n = strlen(name) + 1;
    uint64_t at = r->names && n > 1 ? __atomic_fetch_add(&r->n_names, n, __ATOMIC_RELAXED) : NAMES;
    char *kept = at + n <= NAMES ? r->names + at : NULL;
    if (kept)
        memcpy(kept, name, n);
    __atomic_store_n(&r->importing, kept, __ATOMIC_RELEASE);
}

/* Libraries bind a thread to each processor in turn to count cores, and back: what counts is which
 * they are when another module's doings begin. */
static void note_processors(const struct view *v)
{
    struct recorder *r = v->recorder;
    char processors[1024];
    long n = sys_call(SYS_sched_getaffinity, 0, sizeof processors, (long)processors, 0, 0, 0);
    if (!r->watches || n <= 0 || sys_call(SYS_gettid, 0, 0, 0, 0, 0, 0) != sys_getpid())
        return;
    uint64_t before = r->processors;
    r->processors = brg_hash(processors, (size_t)n, BRG_HASH_SEED);
    if (before && before != r->processors)
        record_event(v, "bind", "");
}

/* What has been done if a file with that name was opened, or written. */
static void watch_path(const struct view *v, const char *kind, const char *path)
{
    static const char *const plain[] = {"null", "zero", "full", "tty", NULL};
    static const char *const random[] = {"random", "urandom", NULL};
    int opened = text_same(kind, "open");
    if (text_starts(path, "/dev/") && !text_starts(path, "/dev/shm/")) {
        const char *name = path + sizeof "/dev/" - 1;
        if (text_is_one_of(name, random))
            record_event(v, "random", path);
        else if (!text_is_one_of(name, plain) && !text_starts(name, "pts/"))
            record_event(v, "device", path);
    } else if (opened &&
               (text_starts(path, "/proc/self") || text_starts(path, "/proc/thread-self") ||
                (text_starts(path, "/proc/") && path[6] >= '0' && path[6] <= '9'))) {
        if (sys_getpid() == v->recorder->pid) /* not a child of vfork's, which closes what it has */
            record_event(v, "process", path);
    } else if (!opened) {
        record_event(v, "write", path);
    }
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
    if (v->recorder->watches && err == 0 && (text_same(kind, "open") || text_same(kind, "write")))
        watch_path(v, kind, path);
    if (text_starts(path, "/proc/") || text_starts(path, "/sys/") || text_starts(path, "/dev/"))
        return;
    record_add(v, kind, err, NULL, path, extra);
}

int record_message(const struct view *v, const char *path)
{
    enum {
        STRINGS = 5
    };
    char *strings[STRINGS];
    if (v->mode != VIEW_RECORD || !text_starts(path, BRG_RECORD_MESSAGE))
        return 0;
    path += sizeof BRG_RECORD_MESSAGE - 1;
    size_t n = strlen(path) + 1, found = 1;
    char *copy = sys_map(n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (!copy)
        return 1;
    memcpy(copy, path, n);
    strings[0] = copy;
    for (char *at = copy; *at; at++) {
        if (*at != '\x1f')
            continue;
        *at = '\0';
        if (found < STRINGS)
            strings[found] = at + 1;
        found++;
    }
    if (found == STRINGS && text_same(strings[0], "importing")) {
        note_processors(v);
        set_importing(v->recorder, strings[3]);
    } else if (found == STRINGS && strings[0][0]) {
        record_add(v, strings[0], text_to_number(strings[1], 0), strings[2], strings[3],
                   strings[4]);
    }
    sys_unmap(copy, n);
    return 1;
}

static int is_open(const struct view *v)
{
    return v->mode == VIEW_RECORD && __atomic_load_n(&v->recorder->state, __ATOMIC_ACQUIRE) == OPEN;
}

void record_flush(const struct view *v)
{
    if (is_open(v))
        journal_flush(&v->recorder->journal);
}

void record_end(const struct view *v, int status)
{
    if (!is_open(v))
        return;
    write_record(v, "end", status, "", "", "");
    journal_flush(&v->recorder->journal);
}
