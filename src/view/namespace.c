/* Making and joining the job's namespace. See namespace.h. */
#include "view/namespace.h"
#include "view/cover.h"
#include "view/covering.h"
#include "base/sys.h"
#include "base/text.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    WAIT_MS = 30000, /* for the rank that makes it */
    STEP_MS = 2
};

/* What the child tells: where it is, or why it gave up. */
struct told {
    enum brg_namespace_why why;
    int err; /* errno */
    uint32_t covers;
};

const char *namespace_words(enum brg_namespace_why why)
{
    switch (why) {
#define BRG_X(name, text) \
    case BRG_NAMESPACE_##name: return text;
        BRG_NAMESPACE_WHYS(BRG_X)
#undef BRG_X
    case BRG_NAMESPACE_NONE: break;
    }
    return "";
}

/* The inode number of a process's namespace, 0 if it cannot be seen. */
static uint64_t namespace_of(pid_t pid, const char *kind)
{
    char path[64];
    struct stat st;
    struct text t = text_in(path, sizeof path);
    text_add(&t, "/proc/");
    text_number(&t, (uint64_t)pid, 10);
    text_add(&t, "/ns/");
    text_add(&t, kind);
    return sys_stat(path, &st) == 0 ? st.st_ino : 0;
}

/* ---- ids ---- */

static int write_file(pid_t pid, const char *name, const char *text)
{
    char path[64];
    struct text t = text_in(path, sizeof path);
    text_add(&t, "/proc/");
    text_number(&t, (uint64_t)pid, 10);
    text_add(&t, "/");
    text_add(&t, name);
    int fd = sys_open(path, O_WRONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    long n = sys_write(fd, text, strlen(text));
    sys_close(fd);
    return n < 0 ? (int)n : 0;
}

/* All ids that there are here, each as itself: the first and the third number of each line. */
static void all_ids(const char *name, struct text *map)
{
    char path[64], lines[4096];
    struct text t = text_in(path, sizeof path);
    text_add(&t, "/proc/self/");
    text_add(&t, name);
    int fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
    long n = fd < 0 ? 0 : sys_read(fd, lines, sizeof lines - 1);
    sys_close(fd);
    lines[n > 0 ? n : 0] = '\0';
    for (char *line = lines; *line;) {
        uint64_t first = strtoull(line, &line, 10);
        strtoull(line, &line, 10);
        uint64_t count = strtoull(line, &line, 10);
        line += strspn(line, "\n");
        text_number(map, first, 10);
        text_add(map, " ");
        text_number(map, first, 10);
        text_add(map, " ");
        text_number(map, count, 10);
        text_add(map, "\n");
    }
}

static int give_one(pid_t child, const char *name, uint64_t id)
{
    char map[64];
    struct text t = text_in(map, sizeof map);
    text_number(&t, id, 10);
    text_add(&t, " ");
    text_number(&t, id, 10);
    text_add(&t, " 1");
    return write_file(child, name, map);
}

int namespace_give_ids(pid_t child)
{
    char users[4096], groups[4096];
    if (geteuid() == 0) {
        struct text u = text_in(users, sizeof users), g = text_in(groups, sizeof groups);
        all_ids("uid_map", &u);
        all_ids("gid_map", &g);
        if (write_file(child, "uid_map", users) == 0)
            return write_file(child, "gid_map", groups);
    }
    int err = write_file(child, "setgroups", "deny");
    if (err == 0 || err == -ENOENT)
        err = give_one(child, "uid_map", geteuid());
    return err < 0 ? err : give_one(child, "gid_map", getegid());
}

/* ---- making it ---- */

static void child_makes(struct covering *c, int ask, int tell)
{
    struct told told = {BRG_NAMESPACE_NONE, 0, 0};
    char byte = 0;
    int err = covering_make_layer(c);
    if (err < 0) {
        told.why = BRG_NAMESPACE_LAYER;
        told.err = -err;
    } else if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
        told.why = BRG_NAMESPACE_USER;
        told.err = errno;
    } else if (write(tell, &told, sizeof told) != sizeof told || read(ask, &byte, 1) != 1) {
        _exit(1);
    } else {
        covering_mount(c);
        told.covers = c->mounted;
        if (!c->mounted) {
            told.why = BRG_NAMESPACE_MOUNT;
            told.err = c->refused;
        }
    }
    if (write(tell, &told, sizeof told) == sizeof told)
        err = (int)read(ask, &byte, 1); /* until it has been joined, or its parent is gone */
    _exit(0);
}

/* Until the next word of the child. A child that died says nothing. */
static void hear(int fd, struct told *told)
{
    long n;
    do
        n = read(fd, told, sizeof *told);
    while (n < 0 && errno == EINTR);
    if (n != sizeof *told)
        *told = (struct told){BRG_NAMESPACE_USER, ECHILD, 0};
}

static int is_in(pid_t pid, uint64_t user, uint64_t mounts)
{
    return namespace_of(pid, "user") == user && namespace_of(pid, "mnt") == mounts;
}

/* Enters the two namespaces of a process, which may end meanwhile. Returns 1, 0 if it has ended or
 * is in others (its number may be another's by now), or -errno. */
static int enter(pid_t pid, uint64_t user, uint64_t mounts)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0), err = fd < 0 ? errno : 0;
    int there = is_in(pid, user, mounts);
    if (there && fd >= 0)
        err = setns(fd, CLONE_NEWUSER | CLONE_NEWNS) == 0 ? 0 : errno;
    if (fd >= 0)
        close(fd);
    return !there || err == ESRCH ? 0 : err ? -err : 1;
}

/* Leads the child through it and joins what it has made. */
static struct told lead(const struct view *v, pid_t child, int tell, int ask)
{
    struct told told;
    hear(ask, &told);
    if (told.why)
        return told;
    int err = namespace_give_ids(child);
    if (err < 0)
        return (struct told){BRG_NAMESPACE_IDS, -err, 0};
    if (write(tell, "m", 1) != 1)
        return (struct told){BRG_NAMESPACE_USER, EPIPE, 0};
    hear(ask, &told);
    if (told.why)
        return told;
    uint64_t user = namespace_of(child, "user"), mounts = namespace_of(child, "mnt");
    int entered = user && mounts ? enter(child, user, mounts) : 0;
    if (entered <= 0)
        return (struct told){BRG_NAMESPACE_JOIN, entered ? -entered : ESRCH, 0};
    v->state->namespace_covers = told.covers;
    v->state->namespace_user = user;
    v->state->namespace_mount = mounts;
    return told;
}

static struct told make(const struct view *v, struct covering *c)
{
    int down[2], up[2];
    struct told told = {BRG_NAMESPACE_USER, EMFILE, 0};
    if (pipe2(down, O_CLOEXEC) != 0)
        return told;
    if (pipe2(up, O_CLOEXEC) != 0) {
        close(down[0]);
        close(down[1]);
        return told;
    }
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        close(down[1]);
        close(up[0]);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent)
            child_makes(c, down[0], up[1]);
        _exit(1);
    }
    close(down[0]);
    close(up[1]);
    if (child > 0)
        told = lead(v, child, down[1], up[0]);
    else
        told.err = errno;
    close(down[1]); /* the child ends */
    close(up[0]);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    return told;
}

static struct told plan_and_make(const struct view *v, const char *job, const char *cwd)
{
    char layer[PATH_MAX];
    struct covering c = {.index = v->index, .staged = v->root, .layer = layer};
    struct text t = text_in(layer, sizeof layer);
    text_add(&t, job);
    text_add(&t, "/cover-");
    text_number(&t, (uint64_t)getpid(), 10);
    text_add(&t, "."); /* a pid may come again, over what one that was killed has left */
    text_number(&t, v->slot->start_ns, 10);
    uint8_t *marks = malloc(v->index->n_entries + 1);
    if (!marks || t.full) {
        free(marks);
        return (struct told){BRG_NAMESPACE_LAYER, ENOMEM, 0};
    }
    struct told told = {BRG_NAMESPACE_FOLDERS, 0, 0};
    c.marks = marks;
    if (cover_plan(v->index, brg_state_dirty(v->state), cwd, marks) > 0)
        told = make(v, &c);
    free(marks);
    return told;
}

/* ---- joining ---- */

/* Joins a living rank. Returns 1, 0 if there is none, or -errno. */
static int join_living(const struct view *v)
{
    const struct brg_slot *slots = brg_state_slots(v->state);
    uint64_t user = v->state->namespace_user, mounts = v->state->namespace_mount;
    int err = 0;
    if (!user)
        return 0;
    if (namespace_of(getpid(), "user") == user)
        return 1;
    for (uint32_t i = 0; i < v->state->n_slots; i++) {
        pid_t pid = (pid_t)slots[i].pid;
        if (pid <= 0 || pid == getpid())
            continue;
        int entered = enter(pid, user, mounts);
        if (entered > 0)
            return 1;
        err = entered < 0 ? entered : err;
    }
    return err;
}

/* The job's folder, locked; -errno. */
static int lock(const char *job)
{
    int fd = sys_open(job, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    for (int waited = 0; fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0; waited += STEP_MS) {
        if (waited >= WAIT_MS || (errno != EWOULDBLOCK && errno != EINTR)) {
            sys_close(fd);
            return -ETIMEDOUT;
        }
        usleep(STEP_MS * 1000);
    }
    return fd;
}

static struct told get_in(const struct view *v, const char *job, const char *cwd)
{
    struct told told = {BRG_NAMESPACE_NONE, 0, 0};
    int fd = lock(job);
    if (fd < 0)
        return (struct told){BRG_NAMESPACE_WAIT, -fd, 0};
    int joined = join_living(v);
    if (joined < 0) {
        told.why = BRG_NAMESPACE_JOIN;
        told.err = -joined;
    } else if (!joined) {
        told.why = v->state->namespace_user ? 0 : v->state->namespace_why;
        told.err = (int)v->state->namespace_errno;
        if (!told.why) /* the first, or all who were in it are gone */
            told = plan_and_make(v, job, cwd);
    }
    if (told.why) {
        v->state->namespace_errno = (uint32_t)told.err;
        v->state->namespace_why = told.why;
    }
    sys_close(fd);
    return told;
}

int namespace_enter(const struct view *v, const char *job, enum brg_namespace_why *why)
{
    char cwd[PATH_MAX];
    struct told told = {BRG_NAMESPACE_PLACE, ENOENT, 0};
    int here = sys_open(".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (here >= 0 && sys_getcwd(cwd, sizeof cwd) > 0 && cwd[0] == '/') {
        told = get_in(v, job, cwd);
    } else {
        v->state->namespace_errno = ENOENT;
        v->state->namespace_why = BRG_NAMESPACE_PLACE;
    }
    if (!told.why) {
        __atomic_fetch_add(&v->state->namespace_ranks, 1, __ATOMIC_RELAXED);
        if (chdir(cwd) != 0 && fchdir(here) != 0)
            chdir("/");
    }
    sys_close(here);
    *why = told.why;
    return told.why ? -(told.err ? told.err : ENOENT) : 0;
}
