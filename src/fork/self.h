/* What a process is, as far as whoever started it decides: read, compared, taken over.
 *
 * A rank process reads what it is; a child of the template becomes that. What a process cannot take
 * over must be the same in both, or the rank is not forked. Only raw system calls: the template's
 * part is loaded into programs whose calls of libc are watched.
 */
#ifndef BRG_FORK_SELF_H
#define BRG_FORK_SELF_H

#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

enum {
    SELF_NAMESPACES = 8,
    SELF_LIMITS = 16,       /* RLIM_NLIMITS */
    SELF_PROCESSORS = 1024, /* bytes of a set of processors: 8,192 of them */
    SELF_ATTRIBUTES = 3,
    SELF_MEMORY = 128,       /* bytes of a set of NUMA nodes: 1,024 of them, as many as Linux has */
    SELF_STATUS = 128 * 1024 /* bytes of /proc/self/status, in which are 10,000 groups */
};

struct fork_self {
    /* must be the same */
    uint64_t rights; /* digest of user, groups, capabilities and how they are kept, seccomp */
    uint64_t namespaces[SELF_NAMESPACES]; /* inode numbers; 0: not known */
    uint64_t cgroup;                      /* digest of where it is accounted, but for its task */
    uint64_t devices;                     /* digest of those that it may not use: devices.h */
    uint64_t ignored;                     /* bit s - 1: signal s is ignored */
    uint64_t personality;
    uint64_t n_processors; /* that it may use */
    /* taken over */
    struct rlimit limits[SELF_LIMITS]; /* that of the stack must be the same */
    uint64_t blocked;                  /* signal mask */
    uint8_t processors[SELF_PROCESSORS];
    uint8_t memory[SELF_MEMORY];         /* set_mempolicy(2), as numactl sets it */
    int32_t memory_policy;               /* -1: not known */
    int32_t attributes[SELF_ATTRIBUTES]; /* of prctl(2), as self.c lists them */
    int32_t nice, policy, priority, io_priority, oom_score, core_filter, umask;
    int32_t pid, group, session, terminal; /* terminal: device number, 0: none */
};

/* Reads what this process is. 0 or -errno. */
int self_read(struct fork_self *self);

/* The first thing, in words, in which `wanted` differs from `mine` and that cannot be taken over;
 * NULL if there is none. */
const char *self_differs(const struct fork_self *mine, const struct fork_self *wanted);

/* Makes this process, a child of the one that `mine` is of, what `wanted` says, but for its mask
 * of signals, which is last: self_unblock(). *joined: whether it is in `wanted`'s process group.
 * 0, or -errno with *what in words. */
int self_become(const struct fork_self *mine, const struct fork_self *wanted, int *joined,
                const char **what);

/* Gives this process the limits, priorities, processors and memory policy again that it was started
 * with. 0 or -errno. */
int self_restore(const struct fork_self *started);

/* What of these it no longer has as it was started with them, in words; NULL: nothing. */
const char *self_changed(const struct fork_self *started);

void self_unblock(const struct fork_self *wanted);

#endif
