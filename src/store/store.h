/* The file itself, as one rank sees it: temporary until it is published.
 *
 * Rank 0 prepares; what it found out goes to every rank as a token of plain bytes; then each rank
 * opens the store for itself. write, read and flush may be called by any one thread at a time of a
 * rank, and by many ranks at once for different bytes. Errors name path and offset.
 *
 * Beside NAME, until it is published or discarded (docs/format.md, "Shared files"):
 *   .NAME.brg-ID          its bytes; rank 0 holds a lock on it for as long as it lives
 *   .NAME.brg-ID.blocks   checksums as they become known (sums_pad.h), where memory does not do
 *   .NAME.brg-ID.sums     becomes NAME.sums
 *   .NAME.brg-ID.parts/   with layout=parts (parts.h): stays; then .NAME.brg-ID is the index
 *
 * Or the file itself is written, as any program would (STORE_IN_PLACE): then nothing is beside it,
 * nothing is published, and what was written is there, whatever comes after.
 */
#ifndef BRG_IO_STORE_H
#define BRG_IO_STORE_H

#include <string.h>
#include <sys/types.h>

#include "world/hints.h"

#define STORE_PATH 1024
/* With BRG_READ, BRG_WRITE or both; BRG_CREATE makes a file where there is none, and keeps what one
 * holds. Hints checksums, layout and async do not apply; sums that describe the file go away. */
#define STORE_IN_PLACE 0x100u
/* What is asked of the file system goes to servers, as ranks on several nodes see it: where several
 * things are to be done, a thread does some. */
#define STORE_SLOW 0x200u
#define STORE_PAGE 65536u
#define STORE_MOST_BLOCKS (UINT64_C(1) << 29) /* with checksums: 4 GiB of them */

struct store_token {
    char path[STORE_PATH];      /* the name that will be published, symbolic links resolved */
    char base[STORE_PATH];      /* .NAME.brg-ID; "" when reading */
    char temporary[STORE_PATH]; /* what is written; == path when reading or in place, else base */
    uint64_t id;                /* host and boot in the high half, random in the low one; of a file
                                   of parts that is read, its own */
    uint64_t device;            /* st_dev of the file system; 0: not known */
    uint64_t size;              /* of the file that is there; 0 for a new one */
    uint64_t stripe_bytes;      /* hint, file system's, or 1 MiB; power of two */
    uint64_t block_bytes;       /* a checksum each; a power of two that divides the stripe */
    uint32_t stripe_count;      /* 0: not known (not Lustre) */
    uint64_t lock_bytes;        /* what one node may write at a time, a power of two; 0: any */
    int reserves;               /* room for what is written is reserved before */
    int one_stream;             /* its disk is read fastest by one reader */
    int is_far;                 /* its disk takes long to answer, as far as is known */
    enum io_layout layout;      /* of the file that is there, or of the new one */
    int32_t mode;               /* permissions of the new file */
    uid_t owner;                /* of the new file, where not as it is made: else (uid_t)-1 */
    gid_t group;                /* the same */
    unsigned flags;             /* BRG_*, STORE_IN_PLACE, STORE_SLOW */
    char place[160];            /* for people: how it lies on its servers */
    int lock;                   /* rank 0's descriptor of base; of no meaning elsewhere */
    int file;                   /* rank 0's of the file that is there, for its store; or -1 */
    int32_t process;            /* rank 0 */
    uint64_t inode;             /* of the file that was opened, or made */
    int64_t modified_ns;        /* its last change then */
};

/* No other file takes its place: it is read, or changed as it lies. */
static inline int store_as_it_lies(const struct store_token *token)
{
    return strcmp(token->temporary, token->path) == 0;
}

struct io_store;

/* Rank 0 only. Finds out what is there, checks what can be checked, makes the temporary file;
 * removes temporary files of the same name whose job is certainly dead. After success either
 * store_open or store_abandon.
 * `page`: STORE_PAGE bytes, zeros, that all ranks of a node share until the file is closed; or
 * NULL. With one, what they tell each other of the checksums of some hundred MiB takes no file. */
int store_prepare(const char *path, unsigned flags, const struct io_hints *hints, char *page,
                  struct store_token *token, struct brg_error *err);
/* Rank 0 only: undoes store_prepare, or ends what it left open, where no store was opened. */
void store_abandon(const struct store_token *token);

/* Every rank. Opens nothing before the first write or read; what is read is the file that rank 0
 * opened, whatever has its name by then, or -ESTALE. In two steps, of which only the first
 * can fail (NULL: no memory), or in one. `rank` names this one's part; `page` is
 * what was given to store_prepare, as this rank sees it. */
struct io_store *store_new(void);
void store_begin(struct io_store *store, const struct store_token *token,
                 const struct io_hints *hints, uint32_t rank, char *page);
int store_open(const struct store_token *token, const struct io_hints *hints, uint32_t rank,
               char *page, struct io_store **store, struct brg_error *err);
void store_close(struct io_store *store);
/* Opens the data now, rather than with the first write or read. 0 or -errno with *err. Several
 * threads may do so at once, of a file in place. */
int store_need_file(struct io_store *store, struct brg_error *err);

/* All bytes or an error at the first that failed. Blocks (of block_bytes) that one write fills,
 * or that one rank alone writes from beginning to end, have their checksums from memory. */
int store_write(struct io_store *store, const void *buf, size_t bytes, uint64_t offset,
                struct brg_error *err);
/* Every rank, before its first write of a call: of bytes that several calls write, the last call's
 * stay. */
void store_begin_call(struct io_store *store);
/* These bytes, the last that were written, begin to go to the disk; waits for those of four pushes
 * ago; where only syncing is known to send them (FUSE), for these. A failure to write them comes
 * out here. With sync=no it does nothing. */
int store_push(struct io_store *store, size_t bytes, uint64_t offset, struct brg_error *err);
/* Every rank, after its last write of a call and before the ranks agree on it: writes of later
 * calls come after those of this one. The file will have `size` bytes after it (0: not known). */
int store_end_call(struct io_store *store, uint64_t size, struct brg_error *err);
/* Bytes that are written before the ranks have met for the call that they belong to, one piece a
 * call, where store_may_early. Then each rank that wrote early says what became of them: */
enum store_early_end {
    STORE_KEEP,   /* nothing of any rank overlaps; every rank says so, and there is no
                     store_begin_call and store_end_call of this call */
    STORE_SHARED, /* that, and blocks of this rank, or its stream's, are others' as well */
    STORE_AGAIN,  /* the call does it all once more */
    STORE_DOUBT   /* there is no call: some rank refused it */
};
int store_may_early(const struct io_store *store, size_t bytes, uint64_t offset);
int store_write_early(struct io_store *store, const void *buf, size_t bytes, uint64_t offset,
                      struct brg_error *err);
int store_end_early(struct io_store *store, enum store_early_end end, uint64_t size,
                    struct brg_error *err);
/* What has so many bytes starts on its way to the disk as soon as it is written: a rank's by
 * itself, and bytes [from, until) of several ranks' short writes, which lie in memory next to each
 * other by then, where one of them says so. Less is left to the sync: small requests cost a disk
 * more. */
#define STORE_START_BYTES (256u << 10)
void store_start(struct io_store *store, uint64_t from, uint64_t until);
/* Local: the block that this rank is writing from its beginning (with async: none), if it has not
 * come to its end: [from, until) and 1, or 0. Where another rank writes to it, this one says so
 * before. */
int store_stream(const struct io_store *store, uint64_t *from, uint64_t *until);
int store_end_stream(struct io_store *store, struct brg_error *err);
/* Local, after a call: whether blocks that this rank wrote must be read back before all have
 * checksums; what the ranks agreed on; and that again. With async it is not known: there may be. */
int store_has_unsummed(const struct io_store *store);
void store_hear_unsummed(struct io_store *store, int unsummed);
int store_is_unsummed(const struct io_store *store);
/* Where ranks are on several nodes, each of which has a page of its own: whether this rank's has
 * not been left. On rank 0, where nobody else has written: bytes in blocks that must be read back,
 * or more. */
int store_has_page(const struct io_store *store);
uint64_t store_page_unsummed(const struct io_store *store, uint64_t size);
/* One rank of each node, when all have written what a commit is of: what its page says, n values,
 * returned; the least of all nodes' come back, and it returns whether blocks must be read back. */
#define STORE_PAGE_VALUES 14337
int store_page_say(const struct io_store *store, uint64_t size, int64_t *values);
int store_page_hear(struct io_store *store, uint64_t size, const int64_t *values);
/* Then every rank, where such blocks must be read back, before store_settle; or before others than
 * rank 0 write to a file that was there. With an agreement behind it: what rank 0's page says goes
 * to a file that all see. No call is under way. */
int store_page_leave(struct io_store *store, uint64_t size, struct brg_error *err);
/* What was written before, or by store_prepare, goes to where other nodes see it: what they write
 * from now on, after an agreement, comes later. Not needed for layout=parts. */
int store_show(struct io_store *store, struct brg_error *err);
/* Between calls: the file is closed, until the next call opens it again. On NFS and its like it is
 * closing that makes bytes visible to other nodes, and that tells of a full disk. */
int store_let_go(struct io_store *store, struct brg_error *err);
/* Fewer bytes than asked for only at the end of the file: *got. With hint verify=yes, -EBADMSG
 * where a block does not match its checksum. */
int store_read(struct io_store *store, void *buf, size_t bytes, uint64_t offset, size_t *got,
               struct brg_error *err);
/* The same, and -ENODATA where there are fewer. */
int store_read_all(struct io_store *store, void *buf, size_t bytes, uint64_t offset,
                   struct brg_error *err);
/* Where the byte at `offset` would be read from; opens the file. Past its end there is nothing to
 * wait for. */
enum store_where {  /* the least is the slowest */
    STORE_UNKNOWN,  /* over a network, as a rule; or parts */
    STORE_ON_DISK,  /* a disk of this node's */
    STORE_IN_MEMORY /* of this node */
};
enum store_where store_where(struct io_store *store, uint64_t offset);
/* These bytes will be read or written: what is not in memory begins to come. Of an open file. */
void store_ask_for(struct io_store *store, uint64_t bytes, uint64_t offset);

/* While a file in one piece is written, without async: whether its bytes can be read at all; and as
 * many of them as are asked for, zeros where it ends. */
int store_reads_raw(const struct io_store *store);
int store_read_raw(struct io_store *store, void *buf, size_t bytes, uint64_t offset,
                   struct brg_error *err);

/* Commit, in this order, with an agreement of all ranks after each:
 * Every rank: what it wrote is on stable storage. */
int store_flush(struct io_store *store, struct brg_error *err);
/* Every rank of n_ranks: a share of the blocks without checksums is read back. Where no rank is
 * unsummed there are none. */
int store_settle(struct io_store *store, uint32_t n_ranks, uint64_t size, struct brg_error *err);
/* Before that, every rank that has a share: these bytes were written in no call, whoever did. */
int store_mark(struct io_store *store, uint64_t bytes, uint64_t offset, struct brg_error *err);
/* Or, where all ranks see each other's writes at once (one node, no async), store_settle before,
 * and instead of store_flush this: rank 0 syncs the checksums while all sync what they wrote. */
int store_secure(struct io_store *store, uint64_t size, struct brg_error *err);
/* Rank 0 only: the file of `size` bytes appears under its name. */
int store_publish(struct io_store *store, uint64_t size, struct brg_error *err);

/* Of a file in place: store_flush is all there is of these. One rank at a time: it has `size` bytes
 * now. Any rank: how many it has. */
int store_resize(struct io_store *store, uint64_t size, struct brg_error *err);
int store_size(struct io_store *store, uint64_t *size, struct brg_error *err);
/* fsync, if this rank has opened it: what anybody has written to it on this node, too. */
int store_sync(struct io_store *store, struct brg_error *err);
/* Somebody has done so for this rank. */
void store_synced(struct io_store *store);
/* Of a file in place that store_need_file has opened: a descriptor of it, which stays the store's,
 * also when the file was let go of (store_show, store_flush); -1 before. */
int store_descriptor(const struct io_store *store);
/* Before bytes are read that will be written again, as others may write to a file in place
 * meanwhile: waits until nobody who asks the same has them, and keeps them until store_release. 0
 * of other files. -errno: there are no locks, and the bytes must not be written again. */
int store_hold(struct io_store *store, size_t bytes, uint64_t offset);
void store_release(struct io_store *store, size_t bytes, uint64_t offset);

/* Instead of the three: nothing of it is left, but what has its name by now, and what was written
 * in place. Only rank 0 has something to do. */
void store_discard(struct io_store *store);

/* Removes the checksums of a file that is not there any more, or that is written in place: those
 * of another file are worse than none. Somebody else's NAME.sums stays. 0 or -errno. */
int store_remove_sums(const char *path);

#endif
