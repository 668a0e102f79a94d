/* XXH3 of 64 bits, as quick as this processor allows: compiled for AVX2 as well, and chosen when it
 * runs. The sums are the same. */
#ifndef BRG_IO_XXH3_H
#define BRG_IO_XXH3_H

#include <stddef.h>
#include <stdint.h>

#include <xxhash.h>

uint64_t xxh3_sum(const void *bytes, size_t n);

/* XXH3_64bits_update; reset and digest are xxHash's own. */
void xxh3_update(XXH3_state_t *state, const void *bytes, size_t n);

/* A block's digest as files keep it: 0 says there that nobody wrote it, so 1 stands for 0. */
static inline uint64_t xxh3_kept(uint64_t digest)
{
    return digest ? digest : 1;
}

/* xxh3_avx2.c: for processors that have AVX2 only. */
uint64_t xxh3_sum_avx2(const void *bytes, size_t n);
void xxh3_update_avx2(XXH3_state_t *state, const void *bytes, size_t n);

#endif
