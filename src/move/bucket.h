/* Room for one window: an image of its bytes, and which of them are covered, by grains: all that is
 * put begins and ends on a multiple of 1 << grain bytes. Pure: plain memory,
 * wherever it lies; several ranks may put into one bucket at once, and one that dies in the middle
 * keeps nobody waiting: there is no lock.
 *
 * Where a byte is put twice the bucket can tell afterwards: more was put than is covered. With an
 * owner map the highest rank's byte stays, in whatever order they come, but one at a time; without
 * one, the last one's.
 *
 * A struct bucket is one thread's view. Ranks that share the memory lay out a view each; `start`
 * must be the same in all of them, and one of them clears.
 */
#ifndef BRG_IO_BUCKET_H
#define BRG_IO_BUCKET_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct bucket {
    uint64_t start;             /* byte of the file at image[0]; a multiple of 64 grains */
    uint32_t bytes;             /* of the image; a multiple of 64 grains */
    uint32_t grain;             /* a power of 2 */
    char *image;                /* what is not covered is not defined */
    _Atomic uint64_t *covered;  /* bit i % 64 of word i / 64 is the grain i */
    uint32_t *owner;            /* [bytes >> grain] or NULL; 0, or rank + 1 of the image's bytes */
    _Atomic uint64_t *all_puts; /* bytes put by all who said that they are done */
    uint64_t puts;              /* through this view, since it was done or cleared */
    /* bits of one word that are not in `covered` yet: an atomic or costs as much as copying a
     * hundred bytes, and neighbours' bits are in the same word */
    uint32_t held_word;
    uint64_t held;
};

/* Bytes of memory for one bucket's image and bitmap, whatever its grain; and owner map. */
size_t bucket_room(uint32_t bytes);
size_t bucket_owned_room(uint32_t bytes, uint32_t grain);
static inline size_t bucket_owner_bytes(const struct bucket *bucket, uint32_t bytes)
{
    return (size_t)(bytes >> bucket->grain) * sizeof *bucket->owner;
}

/* A view of a bucket of `bytes` in `memory` (aligned to 64); memory is left as
 * it is. Zeros mean that nothing is covered. */
void bucket_lay(struct bucket *bucket, void *memory, uint32_t bytes, uint32_t grain, int owned);

/* The greatest grain up to `wanted` for a bucket of so many bytes, a power of 2 >= 64. */
uint32_t bucket_grain(uint32_t bytes, uint32_t wanted);

/* Forgets what it holds; it stands for the bytes from `start` on. */
void bucket_clear(struct bucket *bucket, uint64_t start);

/* Puts bytes at `offset` of the file, all of them inside the bucket, as `rank`'s. With an owner map
 * nobody else puts meanwhile. */
void bucket_put(struct bucket *bucket, uint64_t offset, const void *memory, size_t bytes,
                uint32_t rank);

/* Marks bytes that were written into the image directly, as if put; they are there at once. Not
 * with an owner map. */
void bucket_cover(struct bucket *bucket, uint64_t offset, size_t bytes);

/* The same with what another bucket's owner map held for these bytes: words, not aligned. */
void bucket_put_owned(struct bucket *bucket, uint64_t offset, const void *memory, size_t bytes,
                      const void *owners);

/* Marks bytes as covered whose image is left as it is: what a reader wants. */
void bucket_mark(struct bucket *bucket, uint64_t offset, size_t bytes);

/* Counts what was put through this view; after its last put, before anything is asked of it and
 * before others are told. */
void bucket_done(struct bucket *bucket);

/* Whether any byte was put twice. To be asked when all are done; walks the whole bitmap. */
int bucket_overlapped(const struct bucket *bucket);

/* The first run of covered bytes from image byte `from` on: 1 with [*at, *at + *bytes), or 0. To be
 * asked when all have put. */
int bucket_run(const struct bucket *bucket, uint32_t from, uint32_t *at, uint32_t *bytes);

/* Whether every byte of it up to `bytes` is covered. */
int bucket_full(const struct bucket *bucket, uint32_t bytes);

#endif
