/* See xxh3.h. */
#include "store/xxh3.h"

static int wide(void)
{
#ifdef __x86_64__
    return __builtin_cpu_supports("avx2");
#else
    return 0; /* xxHash knows NEON and SVE at compile time */
#endif
}

uint64_t xxh3_sum(const void *bytes, size_t n)
{
    return wide() ? xxh3_sum_avx2(bytes, n) : XXH3_64bits(bytes, n);
}

void xxh3_update(XXH3_state_t *state, const void *bytes, size_t n)
{
    if (wide())
        xxh3_update_avx2(state, bytes, n);
    else
        XXH3_64bits_update(state, bytes, n);
}
