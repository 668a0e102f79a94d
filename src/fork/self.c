/* What a process is. See self.h. */
#include "fork/self.h"
#include "base/sys.h"
#include "base/text.h"
#include "fork/devices.h"
#include "fork/stat.h"
#include "image/index.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>

enum {
    PAGE = 8192,
    HUGE_PAGES_IF_ADVISED = 2, /* PR_THP_DISABLE_EXCEPT_ADVISED */
    IOPRIO_WHO_PROCESS = 1
};

static const char *const namespace_names[SELF_NAMESPACES] = {"user", "mnt", "pid",    "net",
                                                             "ipc",  "uts", "cgroup", "time"};
/* Lines of /proc/self/status that say what a process may do. */
static const char *const right_names[] = {
    "Uid:",    "Gid:",    "Groups:",     "CapInh:",  "CapPrm:",         "CapEff:",
    "CapBnd:", "CapAmb:", "NoNewPrivs:", "Seccomp:", "Seccomp_filters:"};

/* What an exec keeps and a child of fork has of its parent, or not at all. */
static const struct {
    int get, set, by_address;
} attributes[SELF_ATTRIBUTES] = {
    {PR_GET_TIMERSLACK, PR_SET_TIMERSLACK, 0},
    {PR_GET_THP_DISABLE, PR_SET_THP_DISABLE, 0},
    {PR_GET_CHILD_SUBREAPER, PR_SET_CHILD_SUBREAPER, 1},
};
static const char oom_score[] = "/proc/self/oom_score_adj";
static const char core_filter[] = "/proc/self/coredump_filter";

static size_t line_length(const char *s)
{
    size_t n = 0;
    while (s[n] && s[n] != '\n')
        n++;
    return n;
}

static const char *next_line(const char *s)
{
    s += line_length(s);
    return *s ? s + 1 : s;
}

static uint64_t hexadecimal(const char *s)
{
    uint64_t value = 0;
    while (*s == ' ' || *s == '\t')
        s++;
    for (;; s++) {
        int digit = *s >= '0' && *s <= '9' ? *s - '0' : *s >= 'a' && *s <= 'f' ? *s - 'a' + 10 : -1;
        if (digit < 0)
            return value;
        value = value << 4 | (unsigned)digit;
    }
}

/* Signals 32 and 33, in a mask. Where a process has used threads, glibc's posix_spawn() has a child
 * ignore them, which nobody asked for or can notice: that differs between ranks by chance. */
#define LIBCS_OWN (UINT64_C(3) << 31)

static int read_status(struct fork_self *self)
{
    static char text[SELF_STATUS];
    long n = sys_read_text("/proc/self/status", text, sizeof text);
    if (n < 0)
        return (int)n;
    if (n == sizeof text - 1) /* more groups than fit: then nothing is known */
        return -E2BIG;
    self->rights = BRG_HASH_SEED;
    for (const char *line = text; *line; line = next_line(line)) {
        for (size_t i = 0; i < sizeof right_names / sizeof *right_names; i++)
            if (text_starts(line, right_names[i]))
                self->rights = brg_hash(line, line_length(line) + 1, self->rights);
        if (text_starts(line, "SigIgn:"))
            self->ignored = hexadecimal(line + sizeof "SigIgn:" - 1) & ~LIBCS_OWN;
    }
    long kept = sys_call(SYS_prctl, PR_GET_SECUREBITS, 0, 0, 0, 0, 0);
    self->rights = brg_hash((const char *)&kept, sizeof kept, self->rights);
    return 0;
}

/* Slurm gives each task a group of its own below the step's, which has the limits but for devices:
 * they are asked for. */
static size_t without_task(const char *line, size_t n)
{
    static const char task[] = "/task_";
    size_t at = n;
    while (at > 0 && line[at - 1] >= '0' && line[at - 1] <= '9')
        at--;
    size_t tail = sizeof task - 1;
    return at < n && at >= tail && memcmp(line + at - tail, task, tail) == 0 ? at - tail : n;
}

static int read_cgroup(struct fork_self *self)
{
    char text[PAGE];
    long n = sys_read_text("/proc/self/cgroup", text, sizeof text);
    self->cgroup = BRG_HASH_SEED;
    if (n == -ENOENT)
        return 0;
    for (const char *line = text; n > 0 && *line; line = next_line(line)) {
        self->cgroup = brg_hash(line, without_task(line, line_length(line)), self->cgroup);
        self->cgroup = brg_hash("\n", 1, self->cgroup);
    }
    return n < 0 ? (int)n : 0;
}

static void read_namespaces(struct fork_self *self)
{
    char path[64];
    struct stat st;
    for (int i = 0; i < SELF_NAMESPACES; i++) {
        struct text t = text_in(path, sizeof path);
        text_add(&t, "/proc/self/ns/");
        text_add(&t, namespace_names[i]);
        self->namespaces[i] = sys_stat(path, &st) == 0 ? st.st_ino : 0;
    }
}

static int read_stat(struct fork_self *self)
{
    uint64_t fields[STAT_FIELDS];
    int err = stat_read(fields);
    if (err)
        return err;
    self->group = (int32_t)fields[STAT_GROUP];
    self->session = (int32_t)fields[STAT_SESSION];
    self->terminal = (int32_t)fields[STAT_TERMINAL];
    return 0;
}

static int read_number_of(const char *path, int base)
{
    char text[32];
    long n = sys_read_text(path, text, sizeof text);
    return n > 0 ? (int)strtol(text, NULL, base) : 0;
}

static void read_attributes(struct fork_self *self)
{
    for (int i = 0; i < SELF_ATTRIBUTES; i++) {
        int value = 0;
        long at = attributes[i].by_address ? (long)&value : 0;
        long got = sys_call(SYS_prctl, attributes[i].get, at, 0, 0, 0, 0);
        self->attributes[i] = attributes[i].by_address ? value : (int32_t)got;
    }
}

static void read_schedule(struct fork_self *self)
{
    int priority = 0;
    memset(self->processors, 0, sizeof self->processors);
    sys_call(SYS_sched_getaffinity, 0, sizeof self->processors, (long)self->processors, 0, 0, 0);
    self->n_processors = 0;
    for (size_t i = 0; i < sizeof self->processors; i++)
        self->n_processors += (uint64_t)__builtin_popcount(self->processors[i]);
    self->nice = 20 - (int32_t)sys_call(SYS_getpriority, PRIO_PROCESS, 0, 0, 0, 0, 0);
    self->policy = (int32_t)sys_call(SYS_sched_getscheduler, 0, 0, 0, 0, 0, 0);
    sys_call(SYS_sched_getparam, 0, (long)&priority, 0, 0, 0, 0);
    self->priority = priority;
    if (sys_call(SYS_get_mempolicy, (long)&self->memory_policy, (long)self->memory, 8 * SELF_MEMORY,
                 0, 0, 0) < 0)
        self->memory_policy = -1;
    self->io_priority = (int32_t)sys_call(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0, 0, 0, 0, 0);
}

static int read_limits(struct fork_self *self)
{
    int err = 0;
    for (int i = 0; i < SELF_LIMITS && err == 0; i++)
        err = (int)sys_call(SYS_prlimit64, 0, i, 0, (long)&self->limits[i], 0, 0);
    return err;
}

int self_read(struct fork_self *self)
{
    memset(self, 0, sizeof *self);
    int err = read_status(self);
    err = err ? err : read_stat(self);
    err = err ? err : read_cgroup(self);
    if (err)
        return err;
    read_namespaces(self);
    read_schedule(self);
    self->devices = devices_denied();
    self->personality = (uint64_t)sys_call(SYS_personality, 0xffffffff, 0, 0, 0, 0, 0);
    read_attributes(self);
    self->oom_score = read_number_of(oom_score, 10);
    self->core_filter = read_number_of(core_filter, 16);
    self->umask = (int32_t)sys_call(SYS_umask, 077, 0, 0, 0, 0, 0);
    sys_call(SYS_umask, self->umask, 0, 0, 0, 0, 0);
    sys_call(SYS_rt_sigprocmask, 0, 0, (long)&self->blocked, sizeof self->blocked, 0, 0);
    self->pid = sys_getpid();
    return read_limits(self);
}

/* For a process that leads a session of its own, a rank that leads one. */
static int leads(const struct fork_self *self)
{
    return self->session == self->pid && !self->terminal;
}

const char *self_differs(const struct fork_self *mine, const struct fork_self *wanted)
{
    if (mine->rights != wanted->rights)
        return "another user, group or capability";
    if (memcmp(mine->namespaces, wanted->namespaces, sizeof mine->namespaces) != 0)
        return "another namespace";
    if (mine->cgroup != wanted->cgroup)
        return "another control group";
    if (mine->devices != wanted->devices)
        return "other devices may be used";
    if (mine->ignored != wanted->ignored)
        return "other signals are ignored";
    if (mine->personality != wanted->personality)
        return "another personality";
    if (mine->n_processors != wanted->n_processors)
        return "another number of processors";
    if (memcmp(&mine->limits[RLIMIT_STACK], &wanted->limits[RLIMIT_STACK], sizeof *mine->limits) !=
        0)
        return "another limit of the stack";
    if (wanted->session != mine->session && !leads(wanted))
        return "another session";
    return NULL;
}

static long set_number_of(const char *path, int value)
{
    char text[16];
    struct text t = text_in(text, sizeof text);
    text_signed(&t, value);
    int fd = sys_open(path, O_WRONLY | O_CLOEXEC, 0);
    long n = fd < 0 ? fd : sys_write(fd, text, t.len);
    if (fd >= 0)
        sys_close(fd);
    return n < 0 ? n : 0;
}

/* Of one that it does not have the kernel says -EINVAL to all. The third argument is a bit of what
 * is told of huge pages; the others take no notice of it. */
static long set_attributes(const struct fork_self *mine, const struct fork_self *wanted)
{
    long err = 0;
    for (int i = 0; i < SELF_ATTRIBUTES && err == 0; i++)
        if (mine->attributes[i] != wanted->attributes[i])
            err = sys_call(SYS_prctl, attributes[i].set, wanted->attributes[i],
                           wanted->attributes[i] & HUGE_PAGES_IF_ADVISED, 0, 0, 0);
    return err;
}

static long set_schedule(const struct fork_self *wanted)
{
    struct fork_self now;
    const struct fork_self *mine = &now;
    long err = 0;
    int priority = wanted->priority;
    read_schedule(&now);
    if (memcmp(mine->processors, wanted->processors, sizeof mine->processors) != 0)
        err = sys_call(SYS_sched_setaffinity, 0, sizeof wanted->processors,
                       (long)wanted->processors, 0, 0, 0);
    if (err >= 0 && wanted->memory_policy >= 0 &&
        (mine->memory_policy != wanted->memory_policy ||
         memcmp(mine->memory, wanted->memory, sizeof mine->memory) != 0))
        err = sys_call(SYS_set_mempolicy, wanted->memory_policy, (long)wanted->memory,
                       8 * SELF_MEMORY + 1, 0, 0, 0);
    if (err >= 0 && (mine->policy != wanted->policy || mine->priority != wanted->priority))
        err = sys_call(SYS_sched_setscheduler, 0, wanted->policy, (long)&priority, 0, 0, 0);
    if (err >= 0 && mine->nice != wanted->nice)
        err = sys_call(SYS_setpriority, PRIO_PROCESS, 0, wanted->nice, 0, 0, 0);
    if (err >= 0 && mine->io_priority != wanted->io_priority)
        err = sys_call(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, wanted->io_priority, 0, 0, 0);
    return err < 0 ? err : 0;
}

static long set_limits(const struct fork_self *wanted)
{
    struct rlimit now;
    long err = 0;
    for (int i = 0; i < SELF_LIMITS && err == 0; i++) {
        err = sys_call(SYS_prlimit64, 0, i, 0, (long)&now, 0, 0);
        if (err == 0 && memcmp(&now, &wanted->limits[i], sizeof now) != 0)
            err = sys_call(SYS_prlimit64, 0, i, (long)&wanted->limits[i], 0, 0, 0);
    }
    return err;
}

int self_restore(const struct fork_self *started)
{
    long err = set_schedule(started);
    return (int)(err ? err : set_limits(started));
}

const char *self_changed(const struct fork_self *started)
{
    struct fork_self now;
    memset(&now, 0, sizeof now);
    read_schedule(&now);
    if (read_limits(&now) != 0 || memcmp(now.limits, started->limits, sizeof now.limits) != 0)
        return "limits were changed before main";
    if (memcmp(now.processors, started->processors, sizeof now.processors) != 0 ||
        now.memory_policy != started->memory_policy ||
        memcmp(now.memory, started->memory, sizeof now.memory) != 0)
        return "the processors or the memory that it may use were changed before main";
    if (now.nice != started->nice || now.policy != started->policy ||
        now.priority != started->priority || now.io_priority != started->io_priority)
        return "its priority was changed before main";
    return NULL;
}

static long set_group(const struct fork_self *wanted, int *joined)
{
    *joined = !leads(wanted);
    if (!*joined) {
        long session = sys_call(SYS_setsid, 0, 0, 0, 0, 0, 0);
        return session < 0 ? session : 0;
    }
    return sys_call(SYS_setpgid, 0, wanted->group, 0, 0, 0, 0);
}

int self_become(const struct fork_self *mine, const struct fork_self *wanted, int *joined,
                const char **what)
{
    *what = "its process group";
    long err = set_group(wanted, joined);
    if (err == 0) {
        *what = "its priority, processors or memory policy";
        err = set_schedule(wanted);
    }
    if (err == 0 && mine->oom_score != wanted->oom_score) {
        *what = "its OOM score";
        err = set_number_of(oom_score, wanted->oom_score);
    }
    if (err == 0 && mine->core_filter != wanted->core_filter) {
        *what = "what its core has in it";
        err = set_number_of(core_filter, wanted->core_filter);
    }
    if (err == 0) {
        *what = "its timer slack, huge pages or orphans";
        err = set_attributes(mine, wanted);
    }
    if (err == 0) {
        *what = "its limits";
        err = set_limits(wanted);
    }
    sys_call(SYS_umask, wanted->umask, 0, 0, 0, 0, 0);
    return (int)err;
}

void self_unblock(const struct fork_self *wanted)
{
    enum {
        SIG_SET_MASK = 2
    };
    sys_call(SYS_rt_sigprocmask, SIG_SET_MASK, (long)&wanted->blocked, 0, sizeof wanted->blocked, 0,
             0);
}
