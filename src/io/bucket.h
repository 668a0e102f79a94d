/* Room for one window: an image of its bytes, and which of them are covered. Pure: plain memory,
 * wherever it lies; several ranks may put into one bucket at once.
 *
 * Where two ranks put the same byte the bucket notices (`overlapped`). With an owner map the
 * highest rank's byte stays, in whatever order they come; without one, any.
 */
#ifndef BRG_IO_BUCKET_H
#define BRG_IO_BUCKET_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct bucket {
    uint64_t start;               /* byte of the file at image[0]; a multiple of 64 */
    uint32_t bytes;               /* of the image; a multiple of 64 */
    char *image;                  /* what is not covered is not defined */
    _Atomic uint64_t *covered;    /* bytes / 64 words: bit i % 64 of word i / 64 is byte i */
    uint32_t *owner;              /* [bytes] rank + 1 of each covered byte, or NULL */
    _Atomic uint32_t *locked;     /* with owner: guards image, covered and owner */
    _Atomic uint32_t *overlapped; /* becomes 1 when a covered byte is put again */
};

/* Bytes of memory for one bucket's image, bitmap and, if `owned`, owner map and lock. */
size_t bucket_room(uint32_t bytes, int owned);

/* Lays a bucket of `bytes` out in `memory` (bucket_room bytes, aligned to 64), nothing covered. */
void bucket_lay(struct bucket *bucket, void *memory, uint32_t bytes, int owned);

/* Forgets what it holds; it stands for the bytes from `start` on. */
void bucket_clear(struct bucket *bucket, uint64_t start);

/* Puts bytes at `offset` of the file, all of them inside the bucket, as `rank`'s. */
void bucket_put(struct bucket *bucket, uint64_t offset, const void *memory, size_t bytes,
                uint32_t rank);

/* Marks bytes that were written into the image directly. */
void bucket_cover(struct bucket *bucket, uint64_t offset, size_t bytes);

/* The first run of covered bytes from image byte `from` on: 1 with [*at, *at + *bytes), or 0. */
int bucket_run(const struct bucket *bucket, uint32_t from, uint32_t *at, uint32_t *bytes);

/* Whether every byte of it up to `bytes` is covered. */
int bucket_full(const struct bucket *bucket, uint32_t bytes);

#endif
