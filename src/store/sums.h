/* Checksums of a file that is being written: one XXH3-64 a block, kept on a pad (sums_pad.h) that
 * all its ranks see: for most of a large file on disk, so that no memory grows with it.
 *
 * A block that one write fills, or that one rank writes from its beginning to its end while nobody
 * else writes to it, has its sum from memory: the rank's *stream*, which may go on from call to
 * call. So has the last block of the file, up to where the file ends. Any other block that is
 * written is *marked*, and read back before the file is published. A block that nobody writes is
 * zeros, and its sum is 0.
 *
 * The pad is a row of sheets, each of SUMS_GROUP sums and then as many bytes, the marks:
 * a mark and a sum of one block are never written over each other, in whatever order they come. */
#ifndef BRG_IO_SUMS_H
#define BRG_IO_SUMS_H

#include <xxhash.h>

#include "store/sums_file.h"
#include "store/sums_pad.h"

#define SUMS_GROUP 448u
#define SUMS_IN_MEMORY (SUMS_SHEETS * SUMS_GROUP) /* blocks of the page in memory */

/* Where the sum and the mark of a block lie on the pad. */
static inline uint64_t sums_at(uint64_t block)
{
    return block / SUMS_GROUP * SUMS_SHEET + block % SUMS_GROUP * 8;
}

static inline uint64_t sums_mark_at(uint64_t block)
{
    return block / SUMS_GROUP * SUMS_SHEET + SUMS_GROUP * 8 + block % SUMS_GROUP;
}

struct sums {
    struct sums_pad pad;
    uint64_t block_bytes;
    /* the last blocks that were marked, and whether the pad says so */
    uint64_t mark_first, mark_n;
    int mark_written;
    int through; /* nothing but the stream is held back from one note to the next */
    int marked;  /* some block was, and not for the stream alone */
    /* a block that was written from its beginning up to stream_at */
    int streaming, stream_marked; /* its block is marked until it is full */
    uint64_t stream_at;
    XXH3_state_t stream;
    /* sums that are not on the pad yet: blocks [first, first + n) */
    uint64_t first;
    uint32_t n;
    uint64_t sum[SUMS_IN_MEMORY]; /* at the end, as most files touch little of it */
};

/* On a pad of this page and file. */
void sums_open(struct sums *sums, char *page, const char *working, uint64_t block_bytes);
void sums_close(struct sums *sums);

/* These bytes are written in this call. Several ranks may note different blocks at once; of one
 * block, in one call, a sum may come from one rank only. 0 or -errno of the pad. */
int sums_note(struct sums *sums, const void *buf, size_t bytes, uint64_t offset);

/* The same, between calls, of bytes that are written before the ranks have met, and may have to be
 * written once more: only blocks that they fill are noted, and nothing of it is on the pad yet.
 * They must have room in memory. */
int sums_have_room(uint64_t block_bytes, size_t bytes, uint64_t offset);
void sums_note_early(struct sums *sums, const void *buf, size_t bytes, uint64_t offset);
/* What became of them: they stay, and the blocks that they fill in part are noted as well, or where
 * others may have written to those too (`shared`), marked; or they are noted once more, which
 * begins with forgetting; or nobody knows, and all are marked. */
int sums_keep_early(struct sums *sums, const void *buf, size_t bytes, uint64_t offset, int shared);
void sums_forget_early(struct sums *sums);
int sums_doubt_early(struct sums *sums, size_t bytes, uint64_t offset);

/* Marks the blocks of these bytes, on the pad. */
int sums_mark(struct sums *sums, uint64_t bytes, uint64_t offset);

/* The call has ended, and the file has `size` bytes now (0: not known): what is known must be on
 * the pad before another rank may write the block. */
int sums_end_call(struct sums *sums, uint64_t size);

/* The block that the stream is in, from its first byte on: 1; or 0. */
int sums_stream(const struct sums *sums, uint64_t *from, uint64_t *until);
/* Another rank writes to it, or may. */
int sums_end_stream(struct sums *sums);

/* All that is known is on the pad; streams have ended. */
int sums_flush(struct sums *sums);

/* What lies in the file `data` of `size` bytes already: sums of a section, or with section < 0
 * marks on all of it. */
int sums_seed(struct sums *sums, const struct sums_file *file, int section, uint64_t size);

/* Reads the marked ones of blocks [first, end) back from `data` and gives them their sums. 0, or
 * -errno with *failed the byte of the file at which it failed. */
int sums_settle(struct sums *sums, int data, uint64_t size, uint64_t first, uint64_t end,
                uint64_t *failed);

/* A sums_source; the context is the struct sums. */
int sums_get(void *sums, uint64_t first, size_t n, uint64_t *out);

#endif
