/* The index of an image: what is known about every path an image answers for.
 *
 * The same bytes lie in the image file, in the staged folder of a node (file `index`)
 * and in the address space of every rank, mapped read-only and shared. Nothing in here
 * is a pointer: every offset counts bytes from the start of the header, every table is
 * 8-aligned, all numbers are little-endian. This header and index.c use no libc call
 * beyond what a freestanding compiler may emit (memcpy, memset, memcmp, strlen), because
 * the ld.so auditor compiles them in.
 *
 *   +--------+---------+---------+----------+---------+----------+-------+---------+----------+
 *   | header | entries | buckets | contents | answers | abuckets | roots | strings | sections |
 *   +--------+---------+---------+----------+---------+----------+-------+---------+----------+
 *
 * Entries are keyed by canonical absolute path: no "." or "..", no double slash, and no
 * component but the last is a symbolic link. Siblings that exist lie side by side, sorted
 * by name (parent->first_child, parent->n_children); known absences follow them. A parent
 * comes before its children.
 */
#ifndef BRG_IMAGE_INDEX_H
#define BRG_IMAGE_INDEX_H

#include <stddef.h>
#include <stdint.h>

#define BRG_INDEX_MAGIC UINT64_C(0x0031584449475242) /* "BRGIDX1\0" */
#define BRG_INDEX_VERSION 1u
#define BRG_NONE UINT32_MAX

enum brg_kind {
    BRG_FILE = 1,
    BRG_DIR = 2,
    BRG_SYMLINK = 3,
    BRG_ABSENT = 4, /* the path was looked up and does not exist (err says how) */
    BRG_OTHER = 5,  /* socket, device, pipe: never answered, always the real one */
};

enum brg_entry_flag {
    BRG_HAS_CONTENT = 1, /* a FILE whose bytes are in the image and in the staged folder */
    BRG_LISTED = 2,      /* a DIR all of whose names are known and do not change in a job */
    BRG_COVERED = 4,     /* lies under a covered root (the writer sets it); entries without it are
                            only stepping stones: links and directories that lead to a root */
    /* A DIR of the user's own, all of whose names were known when the image was made: they may
     * change, so its listing is answered during start-up only. */
    BRG_SNAPSHOT = 8,
    /* `dev` is the number that the host where the image was made had given to what is mounted there
     * (mountinfo of proc(5)): another node may have another one for the same file system. */
    BRG_MOUNT_DEV = 16,
    /* A FILE that gives rights to whoever executes it, besides by its mode (capabilities): a copy
     * of it would not. */
    BRG_OWN_RIGHTS = 32,
};

/* A string in the string table; always followed by a NUL that len does not count. */
struct brg_str {
    uint32_t off; /* from header.strings_off */
    uint32_t len;
};

struct brg_entry { /* 144 bytes */
    struct brg_str path;
    struct brg_str target; /* SYMLINK: what readlink gives */
    uint8_t kind;
    uint8_t flags;
    uint16_t err; /* ABSENT: ENOENT or ENOTDIR */
    uint32_t mode;
    uint32_t uid, gid;
    uint32_t nlink;
    uint32_t parent; /* entry, or BRG_NONE */
    uint32_t first_child, n_children;
    uint32_t content; /* into contents, or BRG_NONE */
    uint32_t blksize;
    uint64_t size, blocks;
    uint64_t dev, ino, rdev;
    int64_t atime_ns, mtime_ns, ctime_ns;
    uint32_t name_off; /* offset in path where the last component starts */
    uint32_t order;    /* rank of first use in the trial; BRG_NONE if never used */
    uint64_t reserved[2];
};

_Static_assert(sizeof(struct brg_entry) == 144, "Python reads entries, too");

/* Bytes of a file. All contents form one raw stream in this order; blocks cut the stream. */
struct brg_content {
    uint64_t hash[2]; /* XXH3-128: low, high */
    uint64_t raw_off; /* in the raw stream */
    uint64_t size;
};

/* What ld.so found: `name` asked for by object `requester` in search context `context`. */
struct brg_answer {
    uint64_t context; /* brg_search_context() */
    struct brg_str name, requester;
    struct brg_str path; /* what ld.so opened; len 0: it found nothing */
    uint32_t entry;      /* of path if the image has it, or BRG_NONE */
    uint32_t reserved;
};

struct brg_index {
    uint64_t magic;
    uint32_t version;
    uint32_t header_bytes;
    uint64_t bytes;    /* of the whole index */
    uint64_t checksum; /* XXH3-64 of all bytes, this field taken as 0 */
    uint32_t n_entries, n_buckets;
    uint32_t n_contents, n_answers;
    uint32_t n_abuckets, n_roots;
    uint64_t entries_off, buckets_off; /* buckets: uint32_t entry or BRG_NONE */
    uint64_t contents_off, answers_off, abuckets_off;
    uint64_t roots_off; /* struct brg_str[n_roots]: the covered roots */
    uint64_t strings_off, strings_bytes;
    uint64_t python_off, python_bytes; /* marshalled import tables, opaque to C */
    uint64_t meta_off, meta_bytes;     /* JSON about the image, UTF-8 */
    uint64_t reserved[4];
};

/* What a look-up says. */
enum brg_found {
    BRG_UNKNOWN = 0, /* the image cannot tell: ask the real file system, count a miss */
    BRG_EXISTS = 1,
    BRG_MISSING = 2, /* the path is known not to exist; *err is ENOENT or ENOTDIR */
    BRG_OUTSIDE = 3, /* not under a covered root: not the image's business, not a miss */
};

static inline const struct brg_entry *brg_entries(const struct brg_index *x)
{
    return (const struct brg_entry *)((const char *)x + x->entries_off);
}
static inline const struct brg_content *brg_contents(const struct brg_index *x)
{
    return (const struct brg_content *)((const char *)x + x->contents_off);
}
/* Whether what the image says of an entry lasts, because it is installed software: a directory
 * whose names are known, what lies in one, and the way there. The rest is the user's own and may
 * change while the job runs. */
static inline int brg_entry_lasts(const struct brg_index *x, const struct brg_entry *e)
{
    return (e->flags & BRG_LISTED) || !(e->flags & BRG_COVERED) ||
           (e->parent != BRG_NONE && (brg_entries(x)[e->parent].flags & BRG_LISTED));
}
static inline const char *brg_string(const struct brg_index *x, struct brg_str s)
{
    return (const char *)x + x->strings_off + s.off;
}

/* FNV-1a, 64 bits: the hash of both bucket tables (linear probing, n_buckets a power of two).
 * Bucket of an entry: hash of its path. Bucket of an answer: brg_answer_hash(). */
uint64_t brg_hash(const void *bytes, size_t n, uint64_t seed);
#define BRG_HASH_SEED UINT64_C(0xcbf29ce484222325)

/* Identifies what besides the requester decides an ld.so search: the executable's original
 * path and LD_LIBRARY_PATH as the process was started with it ("" if unset). */
uint64_t brg_search_context(const char *exe, const char *ld_library_path);
uint64_t brg_answer_hash(uint64_t context, const char *requester, const char *name);

/* Find an entry by its exact canonical path. Returns its number, or BRG_NONE. */
uint32_t brg_index_find(const struct brg_index *x, const char *path, size_t len);

/* Resolve an absolute path as the kernel would: components one by one, symbolic links followed
 * (the last one only if `follow`), "." and ".." taken physically. On BRG_EXISTS, *entry is the
 * entry reached. On BRG_MISSING, *err is set, and *entry is the ABSENT entry, the LISTED
 * directory that lacks the name, or the FILE that is used as a directory. When a link or ".."
 * leads out of what the image knows, the answer is BRG_UNKNOWN or BRG_OUTSIDE, and `out` (size
 * out_size, may be NULL) holds the path reached with what remains, so that the caller can go
 * there without walking again; it is the path as given where going on would not be the same
 * (too many links, too long), and "" where it does not fit. *entry is then, on BRG_OUTSIDE, the
 * first link followed that need not last (brg_entry_lasts), and on BRG_UNKNOWN the entry that the
 * image knows and leaves to the kernel (BRG_OTHER, a link too many); BRG_NONE if there is none. A
 * path that is not absolute is BRG_OUTSIDE. What takes a walk takes it in `out`, which must not
 * overlap `path`: what does not fit there is BRG_UNKNOWN. Without it, or with less than 1 KiB, the
 * walk needs 5 KiB of stack. Async-signal-safe, thread-safe. */
enum brg_found brg_index_resolve(const struct brg_index *x, const char *path, int follow,
                                 uint32_t *entry, int *err, char *out, size_t out_size);

/* ld.so's answer for (context, requester, name), or NULL when the trial did not see it. */
const struct brg_answer *brg_index_answer(const struct brg_index *x, uint64_t context,
                                          const char *requester, const char *name);

/* Structural check of an index of `bytes` bytes, 8-aligned, from an untrusted source: every offset,
 * count, string, child range and bucket lies inside. Does not check the checksum. Returns 0 or
 * -EBADMSG, with *why (static text) set on failure. After it has passed, no look-up reads out of
 * bounds. */
int brg_index_check(const void *index, size_t bytes, const char **why);

/* Whether a path has the form of an entry's: absolute, shorter than PATH_MAX, no NUL, no empty,
 * "." or ".." component, no slash at the end. "/" is canonical. */
int brg_path_is_canonical(const char *path, size_t len);

#endif
