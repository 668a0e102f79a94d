/* See bucket.h. Bits are set after the bytes, and relaxed: whoever reads a bucket has been told by
 * a counter that all have put, and that counter orders both. */
#include "move/bucket.h"

#include <string.h>

#define WORD_BITS 64u
#define ALL (~UINT64_C(0))

size_t bucket_room(uint32_t bytes)
{
    return bytes + (size_t)bytes / 8 + 64;
}

size_t bucket_owned_room(uint32_t bytes, uint32_t grain)
{
    struct bucket bucket = {.grain = grain};
    return bucket_room(bytes) + bucket_owner_bytes(&bucket, bytes);
}

uint32_t bucket_grain(uint32_t bytes, uint32_t wanted)
{
    uint32_t most = (uint32_t)__builtin_ctz(bytes / WORD_BITS);
    return wanted < most ? wanted : most;
}

static size_t words_of(const struct bucket *bucket)
{
    return (bucket->bytes >> bucket->grain) / WORD_BITS;
}

void bucket_lay(struct bucket *bucket, void *memory, uint32_t bytes, uint32_t grain, int owned)
{
    char *at = memory;
    *bucket = (struct bucket){.bytes = bytes, .grain = grain, .image = at};
    at += bytes;
    if (owned) {
        bucket->owner = (uint32_t *)(void *)at;
        at += bucket_owner_bytes(bucket, bytes);
    }
    bucket->covered = (_Atomic uint64_t *)(void *)at;
    at += words_of(bucket) * sizeof *bucket->covered;
    bucket->all_puts = (_Atomic uint64_t *)(void *)at;
}

void bucket_clear(struct bucket *bucket, uint64_t start)
{
    bucket->start = start;
    memset((void *)bucket->covered, 0, words_of(bucket) * sizeof *bucket->covered);
    if (bucket->owner)
        memset(bucket->owner, 0, bucket_owner_bytes(bucket, bucket->bytes));
    atomic_store_explicit(bucket->all_puts, 0, memory_order_relaxed);
    bucket->puts = 0;
    bucket->held = 0;
}

/* Bits [from, until) of a word; from < until <= 64. */
static uint64_t bits(uint32_t from, uint32_t until)
{
    return (ALL >> (WORD_BITS - (until - from))) << from;
}

static void let_go(struct bucket *bucket)
{
    if (bucket->held)
        atomic_fetch_or_explicit(&bucket->covered[bucket->held_word], bucket->held,
                                 memory_order_relaxed);
    bucket->held = 0;
}

static void set_some(struct bucket *bucket, uint32_t word, uint64_t mask)
{
    if (word != bucket->held_word)
        let_go(bucket);
    bucket->held_word = word;
    bucket->held |= mask;
}

/* Only words that others may set bits of are worth an atomic or. */
static void set_bits(struct bucket *bucket, uint32_t from, uint32_t until)
{
    uint32_t at = from >> bucket->grain, end = until >> bucket->grain;
    uint32_t word = at / WORD_BITS, last = (end - 1) / WORD_BITS;
    bucket->puts += until - from;
    if (word == last) {
        set_some(bucket, word, bits(at % WORD_BITS, end - word * WORD_BITS));
        return;
    }
    set_some(bucket, word, bits(at % WORD_BITS, WORD_BITS));
    for (word++; word < last; word++)
        atomic_store_explicit(&bucket->covered[word], ALL, memory_order_relaxed);
    set_some(bucket, last, bits(0, end - last * WORD_BITS));
}

/* The owner of grain i of what is put: all of it is `owner`'s, or as `owners` say. */
static uint32_t owner_of(const char *owners, uint32_t owner, size_t i)
{
    if (owners)
        memcpy(&owner, owners + i * sizeof owner, sizeof owner);
    return owner;
}

/* Run by run of grains that no higher rank has. */
static void put_where_highest(struct bucket *bucket, uint32_t at, const char *from, size_t bytes,
                              const char *owners, uint32_t owner)
{
    uint32_t *owned = bucket->owner + (at >> bucket->grain), its;
    size_t n = bytes >> bucket->grain;
    for (size_t i = 0, first; i < n; i++) {
        for (first = i; i < n && (its = owner_of(owners, owner, i)) >= owned[i]; i++)
            owned[i] = its;
        memcpy(bucket->image + at + (first << bucket->grain), from + (first << bucket->grain),
               (i - first) << bucket->grain);
    }
}

void bucket_put(struct bucket *bucket, uint64_t offset, const void *memory, size_t bytes,
                uint32_t rank)
{
    uint32_t at = (uint32_t)(offset - bucket->start);
    if (bytes == 0)
        return;
    if (bucket->owner)
        put_where_highest(bucket, at, memory, bytes, NULL, rank + 1);
    else
        memcpy(bucket->image + at, memory, bytes);
    set_bits(bucket, at, at + (uint32_t)bytes);
}

void bucket_put_owned(struct bucket *bucket, uint64_t offset, const void *memory, size_t bytes,
                      const void *owners)
{
    uint32_t at = (uint32_t)(offset - bucket->start);
    if (bytes == 0)
        return;
    put_where_highest(bucket, at, memory, bytes, owners, 0);
    set_bits(bucket, at, at + (uint32_t)bytes);
}

void bucket_mark(struct bucket *bucket, uint64_t offset, size_t bytes)
{
    uint32_t at = (uint32_t)(offset - bucket->start);
    if (bytes)
        set_bits(bucket, at, at + (uint32_t)bytes);
}

void bucket_cover(struct bucket *bucket, uint64_t offset, size_t bytes)
{
    bucket_mark(bucket, offset, bytes);
    let_go(bucket);
}

void bucket_done(struct bucket *bucket)
{
    let_go(bucket);
    atomic_fetch_add_explicit(bucket->all_puts, bucket->puts, memory_order_relaxed);
    bucket->puts = 0;
}

int bucket_overlapped(const struct bucket *bucket)
{
    uint64_t covered = 0;
    for (uint32_t word = 0; word < words_of(bucket); word++)
        covered += (uint64_t)__builtin_popcountll(
            atomic_load_explicit(&bucket->covered[word], memory_order_relaxed));
    return covered << bucket->grain != atomic_load_explicit(bucket->all_puts, memory_order_relaxed);
}

/* The first byte from `from` on whose grain's bit, flipped by `flip`, is set; bucket->bytes if
 * there is none. */
static uint32_t find(const struct bucket *bucket, uint32_t from, uint64_t flip)
{
    uint32_t words = (uint32_t)words_of(bucket), at = from >> bucket->grain;
    uint64_t keep = ALL << at % WORD_BITS;
    for (uint32_t word = at / WORD_BITS; word < words; word++, keep = ALL) {
        uint64_t found =
            (atomic_load_explicit(&bucket->covered[word], memory_order_relaxed) ^ flip) & keep;
        if (found)
            return (word * WORD_BITS + (uint32_t)__builtin_ctzll(found)) << bucket->grain;
    }
    return bucket->bytes;
}

int bucket_run(const struct bucket *bucket, uint32_t from, uint32_t *at, uint32_t *bytes)
{
    uint32_t first = find(bucket, from, 0);
    if (first == bucket->bytes)
        return 0;
    uint32_t end = find(bucket, first, ALL);
    *at = first;
    *bytes = end - first;
    return 1;
}

int bucket_full(const struct bucket *bucket, uint32_t bytes)
{
    return find(bucket, 0, ALL) >= bytes;
}
