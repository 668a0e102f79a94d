/* What the files of the store share. */
#ifndef BRG_IO_STORE_INSIDE_H
#define BRG_IO_STORE_INSIDE_H

#include <sys/stat.h>

#include "store/parts.h"
#include "store/store.h"
#include "store/store_direct.h"
#include "store/sums.h"

/* A name beside a file: its path and a suffix (".sums"). */
#define STORE_NAME_BYTES (STORE_PATH + 16)
void store_name(char name[STORE_NAME_BYTES], const char *path, const char *suffix);

/* Bytes of a file on disk that may not be there yet. */
struct store_range {
    uint64_t at;
    size_t bytes;
};
#define STORE_PUSHES 4u

struct io_store {
    struct store_token token;
    int sync, checksums, verify, async;
    uint32_t rank;
    int fd;         /* of the data, or -1 */
    int is_fresh;   /* rank 0: token.lock is of the data as well, which nobody was shown yet */
    int kept;       /* the same file, once it was let go of, in place or unsynced; or -1 */
    int written;    /* it must be synced: not in place, and not in parts */
    uint64_t limit; /* RLIMIT_FSIZE when the store began */
    struct store_room {
        uint64_t old;         /* bytes that the file has had from the beginning */
        uint64_t from, until; /* reserved: the last that were, and what adjoins them */
    } room;
    int direct_io, uring;
    struct direct *direct;          /* past the page cache, where that is wanted and works */
    uint64_t read;                  /* bytes, for faults */
    char *page;                     /* of the pad of checksums, or NULL */
    char working[STORE_NAME_BYTES]; /* its file */
    struct sums *sums;              /* of a file that is written, from the first write on */
    int marked;   /* some of this rank's blocks were, before it opened sums again */
    int unsummed; /* some rank's are, as all agreed after the last call */
    struct store_early {
        const void *buf;
        size_t bytes;
        uint64_t offset;
    } early;            /* what was written before the ranks have met; bytes 0: nothing */
    int secured;        /* rank 0: its sums are written and synced, as its size and mode are */
    int sums_are_there; /* and under their name, as the file is */
    int name_is_free;   /* nothing is there that will be replaced */
    int published;      /* it has its name, and stays, also where that may not be durable */
    /* verify=yes: the sections that have matched all that was read so far */
    struct sums_file *known;
    unsigned candidates;
    /* layout=parts */
    struct parts_writer *part;   /* mine, from the first write on */
    struct parts_reader *reader; /* or of the file that is read */
    _Atomic uint64_t call;
    _Atomic uint64_t unsynced; /* in place: bytes written since the last sync */
    size_t memory;             /* for making the index */
    /* store_push: the last ones */
    struct store_range pushed[STORE_PUSHES];
    unsigned pushes;
    int push_kind; /* 0: not asked yet */
};

/* Of a file in place: whether this process syncs what it writes, as far as it has shown. Then bytes
 * start on their way to the disk as they are written: store_start. */
int store_will_sync(void);
/* It goes, or stays with what was written unsynced. */
void store_leave_unsynced(struct io_store *store);
/* Before it is let go of. A file in place stays the one that is open now, whatever becomes of its
 * name. Of any other that is still to be synced this is the descriptor to sync: it was open when
 * bytes that had no room were sent to the disk, and hears of it whoever else has. Closing a copy
 * shows what was written as well. Without a descriptor to spare its name counts. */
void store_keep(struct io_store *store);
/* A file in place that was let go of, opened once more. A descriptor or -errno. */
int store_open_kept(const struct io_store *store, int flags);

/* How many blocks with a checksum each a file of `size` bytes has. */
static inline uint64_t store_n_blocks(const struct store_token *token, uint64_t size)
{
    return (size + token->block_bytes - 1) / token->block_bytes;
}

/* Each request takes long enough for several to be made at once. */
static inline int store_is_slow(const struct store_token *token)
{
    return (token->flags & STORE_SLOW) != 0;
}

static inline int store_in_place(const struct store_token *token)
{
    return (token->flags & STORE_IN_PLACE) != 0;
}

/* What was read matches, block by block: store_verify.c. 0; -EBADMSG; -errno. */
int store_check(struct io_store *store, const void *buf, size_t bytes, uint64_t offset,
                struct brg_error *err);

/* Sums of what this rank writes, where the file has any. */
int store_need_sums(struct io_store *store, struct brg_error *err);
/* The byte is the first whose sum has no room, or may have none. 0 where rc is. */
int store_sums_failed(struct io_store *store, int rc, struct brg_error *err);

/* Removes .NAME.brg-ID and all that belongs to it, or what of it is there. 0, or the first -errno
 * where something stays. */
int store_remove_temporary(const char *base);
/* The same of a file that was just published: what was renamed is not looked for. */
void store_remove_rest(const struct io_store *store);

/* 0, or what keeps this process from the file as flags ask for it, with *err. Each question is a
 * request to a shared file system: only of what could not be opened. */
int store_may_use(const char *path, unsigned flags, struct brg_error *err);
/* 0: the byte at `offset` can be read at once; -EAGAIN: from a disk, which begins; or -errno. */
int store_need_not_wait(int fd, uint64_t offset);
/* Before bytes are written to the file that fd is, or to this rank's part: room for them, where
 * that makes writing faster. What cannot be reserved, the write will say. */
void store_reserve(struct io_store *store, int fd, size_t bytes, uint64_t offset);
/* Owner and group of a file, for what belongs to it. 0, or -errno where they cannot be given. */
int store_give(int fd, const struct store_token *token);
/* A file that is read, and not in place, as another rank than the first opens it: the one that rank
 * 0 has open. -ESTALE: that cannot be reached, and its name is another file's or nobody's. */
int store_open_same(const struct store_token *token);
/* -ESTALE in words. */
int store_is_another(const struct store_token *token, struct brg_error *err);
static inline int64_t store_modified_ns(const struct stat *st)
{
    return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

/* Of the file that is there to the one that was made to take its place, token->lock. */
void store_take_permissions(struct store_token *token, const struct stat *old);

/* The same with its parts: it was not published. */
void store_remove_all(const struct store_token *token);

/* Whose .NAME.brg-ID is. */
enum owner {
    OWNER_LIVES,
    OWNER_GONE,   /* it is not there: published or discarded */
    OWNER_DEAD,   /* it is there, and nobody holds the lock */
    OWNER_UNKNOWN /* it is there, and whether somebody does cannot be asked */
};
enum owner store_owner(const char *base);

/* The folder of parts of .NAME.brg-ID. */
void store_parts_folder(char folder[STORE_NAME_BYTES], const char *base);

/* The folder of parts that were made for the file `path` and go away with it, or "". */
void store_parts_of(char folder[STORE_PATH + PARTS_FOLDER], const char *path);

/* Rank 0, token->lock being the new file: what the old one holds. 0, or -errno with *err. */
int store_copy_old(const struct store_token *token, struct brg_error *err);

/* The folder of the file, around what changes names in it (rc): opened before, so that nothing is
 * published which could not be synced, and synced where rc is 0. The first returns 0 or -errno with
 * *folder, -1 with sync=no; the second rc, or what failed. */
int store_enter_folder(const struct io_store *store, int *folder, struct brg_error *err);
int store_leave_folder(const struct io_store *store, int folder, int rc, struct brg_error *err);

/* store_publish where the layout is one of parts: store_publish_parts.c. */
int store_publish_parts(struct io_store *store, uint64_t size, struct brg_error *err);

/* Removes temporary files of `path` whose job has died on this very host; `own` is none
 * of them. 1: all names of its folder were seen, NAME.sums is none of them, and can be made if
 * .NAME.brg-ID can. */
int store_sweep(const char *path, uint32_t host, const char *own);

/* Flags for open of a file that is made, so that its stripes can be chosen. */
int store_made_flags(const struct store_token *token, const struct io_hints *hints);
/* Makes the temporary file of a new one, and sweeps beside; *is_free is what store_sweep returned.
 * 0, or -errno with *err. */
int store_make_base(struct store_token *token, const struct io_hints *hints, int *is_free,
                    struct brg_error *err);

/* This host since it started. */
uint32_t store_host(void);

/* The section of `file` that belongs to the file of this inode and size, or -1. */
int store_own_section(const struct sums_file *file, uint64_t inode, uint64_t size);

#endif
