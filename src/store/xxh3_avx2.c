/* See xxh3.h. On x86-64 this file is compiled for AVX2; elsewhere nothing calls it. */
#define XXH3_STREAM_USE_STACK 1 /* a state need not be aligned as AVX2 wants it */
#include "store/xxh3.h"

uint64_t xxh3_sum_avx2(const void *bytes, size_t n)
{
    return XXH3_64bits(bytes, n);
}

void xxh3_update_avx2(XXH3_state_t *state, const void *bytes, size_t n)
{
    XXH3_64bits_update(state, bytes, n);
}
