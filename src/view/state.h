/* What the ranks of one job on one node share: counters, slots, changed paths, misses.
 *
 * One file per job and node, `<staged>/jobs/<job>/state`, made by `brigade-stage put`, mapped
 * read-write by every process of the job on that node, read by `brigade-stage drop`. All updates
 * are single atomic operations without order; a crash at any point leaves it readable.
 *
 *   +--------+---------+--------------------+-----------------+
 *   | header | slots[] | dirty bits[entries] | misses[] (ring) |
 *   +--------+---------+--------------------+-----------------+
 */
#ifndef BRG_VIEW_STATE_H
#define BRG_VIEW_STATE_H

#include "base/root.h"

#include <stdint.h>

#define BRG_STATE_MAGIC UINT64_C(0x0031455441545342) /* "BSTATE1\0" */
#define BRG_STATE_VERSION 1u
#define BRG_STATE_SLOTS 1024u
#define BRG_STATE_MISSES 1024u
#define BRG_STATE_DEVICES 16u

/* Why a look-up under a covered root went to the real file system. X(name, words for people) */
#define BRG_MISS_CAUSES(X)                                             \
    X(UNKNOWN, "not looked up in the trial")                           \
    X(NO_CONTENT, "known, but its contents are not in the image")      \
    X(CHANGED, "changed or created during the job")                    \
    X(WRITE, "opened for writing")                                     \
    X(DIRECTORY, "listing of a directory that may change")             \
    X(UNSUPPORTED, "a call or flag that Brigade leaves to the kernel") \
    X(STAGE, "the staged copy could not be used")                      \
    X(LATE, "the user's own file, looked up after start-up")

enum brg_miss_cause {
#define BRG_X(name, text) BRG_MISS_##name,
    BRG_MISS_CAUSES(BRG_X)
#undef BRG_X
    BRG_MISS_COUNT
};

/* Why ranks did without the namespace view. X(name, words for people) */
#define BRG_NAMESPACE_WHYS(X)                                       \
    X(FOLDERS, "the image covers no folder of installed software")  \
    X(USER, "no user namespaces for this user")                     \
    X(IDS, "the user namespace could not be given this user's id")  \
    X(MOUNT, "no overlay mounts in a user namespace")               \
    X(LAYER, "no room in node memory for its layer")                \
    X(JOIN, "the namespace of the other ranks could not be joined") \
    X(WAIT, "another rank was too long at making it")               \
    X(PLACE, "the working directory cannot be entered again")

enum brg_namespace_why {
    BRG_NAMESPACE_NONE = 0,
#define BRG_X(name, text) BRG_NAMESPACE_##name,
    BRG_NAMESPACE_WHYS(BRG_X)
#undef BRG_X
};

struct brg_slot {          /* one rank and its children; 128 bytes */
    uint32_t pid;          /* of the process that took the slot; 0: free */
    int32_t rank;          /* in the job, or -1 */
    uint64_t start_ns;     /* CLOCK_REALTIME when the rank's process started */
    uint64_t last_load_ns; /* CLOCK_REALTIME of the last look-up answered during start-up */
    uint64_t ready_ns;     /* CLOCK_REALTIME when the program said that it is ready, or 0 */
    uint64_t hits;         /* look-ups answered from the image */
    uint64_t misses[8];    /* by brg_miss_cause */
    uint64_t loads;        /* objects loaded by ld.so from node memory */
    uint64_t processes;    /* processes that ran under this slot */
    uint64_t forked;       /* brg_forked */
};

enum brg_forked {
    BRG_FORK_NOT_ASKED = 0,
    BRG_FORK_DONE,   /* it came from the template of its node */
    BRG_FORK_REFUSED /* it was started in the ordinary way */
};

struct brg_fork {   /* what became of --fork on a node */
    uint32_t taken; /* atomic; whether somebody has written, or writes, `why` */
    uint32_t n_words;
    uint64_t saved_bytes; /* that ranks share with their template: measured once, 0: never */
    uint64_t warm_ns;     /* that the template took */
    uint32_t forked;      /* atomic; processes: of a launcher's, several have one slot */
    uint32_t refused;     /* likewise, that were to be forked */
    char why[120];        /* of the first rank that was refused */
    char words[360];      /* of the template, for the report: JSON, or empty */
};

struct brg_device {       /* of files, as st_dev has it */
    uint64_t image, here; /* where the image was made, and on this node */
};

_Static_assert(sizeof(struct brg_slot) == 128, "the Python view writes into slots, too");

struct brg_miss { /* 256 bytes */
    uint8_t cause;
    uint8_t reserved;
    uint16_t len; /* of path as it was; the text is cut at its start if longer */
    char op[12];  /* "open", "stat", ... */
    char path[240];
};

struct brg_state {
    uint64_t magic;
    uint32_t version, n_slots, n_misses, n_entries;
    uint64_t bytes;
    uint64_t slots_off, dirty_off, misses_off;
    uint32_t next_slot; /* atomic; slots past n_slots share the last one */
    uint32_t next_miss; /* atomic; only the first n_misses are kept */
    uint64_t dirty_any; /* atomic; 0 until the first change, so that readers test one word */
    uint64_t namespace_user, namespace_mount; /* inode numbers of the job's; 0: none was made */
    uint32_t namespace_ranks;                 /* atomic; that joined it */
    uint32_t namespace_covers;                /* folders that are mounted in it */
    uint32_t namespace_why, namespace_errno;  /* of the last refusal: brg_namespace_why */
    struct brg_root home;                     /* what the stager saw; mounts 0: not known */
    uint32_t away; /* atomic; programs that were started in a container, and left alone */
    uint32_t n_devices;
    struct brg_fork fork;
    struct brg_device devices[BRG_STATE_DEVICES]; /* whose two numbers differ */
};

static inline struct brg_slot *brg_state_slots(struct brg_state *s)
{
    return (struct brg_slot *)((char *)s + s->slots_off);
}
/* The slot of that number; past the last one it is the last one's. */
static inline struct brg_slot *brg_state_slot(struct brg_state *s, uint32_t number)
{
    return &brg_state_slots(s)[number < s->n_slots ? number : s->n_slots - 1];
}
static inline uint64_t *brg_state_dirty(
    struct brg_state *s) /* bit i: entry i of the index changed */
{
    return (uint64_t *)((char *)s + s->dirty_off);
}
static inline struct brg_miss *brg_state_misses(struct brg_state *s)
{
    return (struct brg_miss *)((char *)s + s->misses_off);
}

/* Bytes of a state for an index of n_entries, and how to lay an all-zero region out. */
static inline uint64_t brg_state_bytes(uint32_t n_entries)
{
    return sizeof(struct brg_state) + BRG_STATE_SLOTS * sizeof(struct brg_slot) +
           (n_entries / 64 + 1) * 8 + BRG_STATE_MISSES * sizeof(struct brg_miss);
}
static inline void brg_state_init(struct brg_state *s, uint32_t n_entries)
{
    s->version = BRG_STATE_VERSION;
    s->n_slots = BRG_STATE_SLOTS;
    s->n_misses = BRG_STATE_MISSES;
    s->n_entries = n_entries;
    s->bytes = brg_state_bytes(n_entries);
    s->slots_off = sizeof *s;
    s->dirty_off = s->slots_off + BRG_STATE_SLOTS * sizeof(struct brg_slot);
    s->misses_off = s->dirty_off + (n_entries / 64 + 1) * 8;
    s->magic = BRG_STATE_MAGIC;
}
#endif
