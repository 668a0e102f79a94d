/* Buffered files: their blocks, the descriptors that lead to them, and who may touch what when.
 *
 *   descriptor (a number) -> desc (an open file description: position, mode) -> file (an inode)
 *
 * All that are open on one inode share its file, so that each sees what another has written. A
 * file's lock protects it, its descs and the entries of the table that lead to them. Descs and
 * files are never freed, only used again: a thread that has just read an entry may still lock the
 * file and then look whether it is what it wanted.
 *
 * While a thread holds such a lock it is "inside": signals with a handler wait until it leaves
 * (signals.h), so a handler finds no lock of its own thread held, and may leave by siglongjmp.
 *
 * What must stay true: no byte that the program did not write is ever written; bytes are written
 * in the order of the calls; where the kernel could be asked by another way than the hooks, the
 * file is "dropped" first: written out, its position told to the kernel, and left alone for good.
 */
#ifndef BRG_BUFFER_FILE_H
#define BRG_BUFFER_FILE_H

#include "buffer/lock.h"
#include "buffer/report.h"
#include "buffer/rules.h"

#include <sys/types.h>
#include <sys/uio.h>

#define TABLE_FDS 65536
#define FILES_MOST 1024
#define DESCS_MOST 4096
#define READ_BLOCKS 8

/* Bytes that the program has written, on their way to the file. */
struct block {
    struct block *next;
    struct file *file;
    char *data;
    uint64_t room_bytes;
    uint64_t start; /* in the file */
    uint64_t len, cap;
    uint64_t since_ns;
    int fd;
    char append;
    char reads; /* a job to read ahead: into file->read[slot] */
    unsigned slot;
    struct desc *desc; /* of which it reads ahead */
};

enum read_state {
    READ_EMPTY,
    READ_FILLING,
    READ_READY
};

/* Bytes read ahead. */
struct read_block {
    char *data;
    uint64_t room_bytes, start, len, want;
    uint64_t stamp_ns, order;
    uint32_t epoch;
    enum read_state state;
    char stale; /* written over while it was being filled */
    char ahead; /* by the worker, not yet used */
    char past;  /* the page cache: see direct.h */
};

struct file {
    struct lock lock;
    struct event event;
    char used;
    char shared_append; /* somebody else appends too */
    char appending;     /* what is pending was written to the end of the file */
    char counted;       /* in n_pending */
    uint32_t generation;
    dev_t dev;
    ino_t ino;
    unsigned n_descs;
    unsigned n_busy;  /* reads of blocks under way, in the background too */
    unsigned n_calls; /* calls under way: see call_begin */
    unsigned n_gates; /* threads that wait for the end of all calls: none begins */
    char writing;     /* one of the calls writes */
    char wanted;      /* somebody waits for the end of a call */
    struct rule rule;
    int error;          /* met in the background, not told yet */
    struct block *open; /* being filled */
    uint64_t n_sealed;  /* blocks that were, */
    uint64_t n_written; /* and those of them that are in the file: the first ones */
    uint64_t low, high; /* all pending bytes lie between these */
    uint64_t end;       /* of the file, while appending */
    struct read_block read[READ_BLOCKS];
    unsigned n_filled; /* read blocks that are not empty */
    uint64_t n_order;  /* of fills begun */
    char on_fuse;
    char past_cache; /* see direct.h */
    struct record *record;
};

struct desc {
    struct file *file;
    int fd; /* one of the descriptors that lead here */
    unsigned n_fds;
    int mode; /* O_ACCMODE */
    char append, direct_writes;
    char busy; /* a call under way goes by the position, or changes it */
    char slow; /* storage, when last read from */
    uint64_t position;
    uint64_t next_read; /* where the last read ended */
    unsigned streak;
    uint64_t window;
    unsigned depth;    /* blocks to have read ahead; 0: not begun */
    unsigned n_direct; /* fills by it that go past the page cache */
};

#pragma GCC visibility push(hidden) /* no look-up through another table */
extern struct desc *table[TABLE_FDS];
extern struct file files[FILES_MOST];
extern struct rules rules;
extern int buffer_active;
extern unsigned fds_end;          /* all descriptors of ours are below it; it only grows */
extern unsigned n_files;          /* files in use */
extern unsigned n_pending;        /* files with bytes that are not in the kernel */
extern uint32_t epoch;            /* what was read ahead before it changed is not used any more */
extern uint64_t file_limit_bytes; /* RLIMIT_FSIZE, or more than any file */
extern struct desc owing; /* stands in the table for a dropped file whose error is not told yet */
#pragma GCC visibility pop

/* Who has the descriptor from whoever opened it sees a fds_end that is above it. */
static inline struct desc *desc_of(int fd)
{
    if ((unsigned)fd >= __atomic_load_n(&fds_end, __ATOMIC_RELAXED))
        return NULL;
    return __atomic_load_n(&table[(unsigned)fd], __ATOMIC_ACQUIRE);
}

/* The desc of `fd` with its file locked and the thread inside; NULL if `fd` is not buffered, with
 * *err the errno of an error that is still owed to the program (0: none; it is told now). Without
 * err it stays owed. */
struct desc *file_enter(int fd, int *err);
void file_leave(struct file *f);
void file_lock_in(struct file *f); /* the same for a file: inside, and locked */

/* After an open: makes `fd` buffered if its path says so or if its inode is buffered already.
 * `path` NULL: no rule matches. */
void file_opened(int fd, const char *path, int flags);

/* Before a close of `fd`: writes out what is pending and forgets `fd`. Returns 0 or -errno of what
 * failed in the background. */
int file_closing(int fd);
/* The same before a call that cannot tell it: what failed is told by another descriptor of the
 * file, where there is one. */
void file_closing_untold(int fd);

/* After dup: `to` leads where `from` does. An error is still owed. */
void file_duplicated(int from, int to);

/* Leaves the file of `fd` to the kernel for good. Returns 0 or -errno as file_closing. */
int file_drop(int fd, const char *why);
/* The same before, or behind, a call that cannot tell it: an error is still owed. */
void file_drop_untold(int fd, const char *why);

/* The same for every file. `keep_private`: not for those whose descriptors exec closes. */
void file_drop_all(const char *why, int keep_private);

/* The same, and nothing that is opened from now on is buffered. */
void file_stop(const char *why);

/* At the process's end: the same, but waits for no reads of other threads, which may never end. */
void file_end(void);

/* Writes out everything; tells the kernel, if asked, each position that no call is changing. */
void file_drain_all(int positions);

/* The same before another program gets the descriptors: no flag of ours is on them. */
void file_hand_over(void);

/* The file of an inode is written out, if it is buffered; returns whether it is. */
int file_drain_inode(dev_t dev, ino_t ino);

/* A call on a locked file begins and ends; between, the lock may be let go of, but the file and the
 * desc stay: close and drop wait. As in the kernel, one call at a time goes by the position of a
 * desc, and one at a time writes to a file. It waits until it may begin: 0, or REAL_CALL if the
 * file was dropped, or the desc closed, meanwhile. Who is in a call neither begins another on the
 * file nor drops it. */
enum call {
    CALL_AT = 0,
    CALL_POSITION = 1,
    CALL_WRITE = 2
};
int call_begin(struct desc *d, int call);
void call_end(struct desc *d, int call);

/* For a locked file. All may let go of the lock meanwhile: see file_wait. */
/* Waits until the file has what was written before, not what others write meanwhile. 0, or
 * REAL_CALL if the file was dropped meanwhile. */
int file_drain(struct file *f);
/* The same; then nothing is pending and no call that writes is under way, or no call at all. None
 * begins meanwhile. */
int file_write_out(struct file *f);
int file_quiet(struct file *f);
void file_drop_locked(struct file *f, const char *why);
int file_take_error(struct file *f); /* 0 or -errno, and forgets it */

/* Waits for the file's event with the lock let go. 0, or REAL_CALL: the file was dropped. */
int file_wait(struct file *f);
void file_discard_reads(struct file *f, uint64_t from, uint64_t to);
int file_pending(const struct file *f);

/* What read and write do, positions included. `at` is the offset of pread, or AT_POSITION.
 * `d` is what file_enter gave; the lock is given back. Returns bytes, -errno, or REAL_CALL: nothing
 * was done, make the real call. */
#define AT_POSITION INT64_MIN
#define REAL_CALL (-100000)
#define ERROR_FIRST (-100001) /* inside: nothing was done, an error of the background is told */
ssize_t file_write(struct desc *d, const struct iovec *iov, int n, off_t at);
ssize_t file_read(struct desc *d, const struct iovec *iov, int n, off_t at);

/* Fork: between these nothing is buffered and nothing runs in the background. */
void file_fork_begin(void);
void file_fork_end(int in_child);

/* Between vfork and exec a child runs in the parent's memory: every call is real there. */
extern unsigned vforks;
void file_vforked(void);
int file_in_vforked_child(void);

#endif
