/* Checksums are the same on every processor: what is summed wide is what xxHash itself says. */
#include "store/xxh3.h"

#include <stdlib.h>

#include "../claim.h"

static unsigned char bytes[(1 << 20) + 64];

static void sums_of_any_length_and_alignment_are_xxhashs(void)
{
    static const size_t lengths[] = {0, 1, 16, 17, 128, 240, 241, 1024, 4096, 65537, 1 << 20};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (size_t shift = 0; shift < 40; shift += 13)
            CHECK(xxh3_sum(bytes + shift, lengths[i]) == XXH3_64bits(bytes + shift, lengths[i]),
                  "%zu bytes at %zu", lengths[i], shift);
}

static void a_sum_in_pieces_is_the_sum_of_all(void)
{
    XXH3_state_t *state = aligned_alloc(_Alignof(XXH3_state_t), sizeof *state);
    for (size_t piece = 1; piece < 100000; piece = piece * 3 + 1) {
        XXH3_64bits_reset(state);
        for (size_t at = 0; at < 1 << 20; at += piece)
            xxh3_update(state, bytes + at, piece < (1 << 20) - at ? piece : (1 << 20) - at);
        CHECK(XXH3_64bits_digest(state) == XXH3_64bits(bytes, 1 << 20), "pieces of %zu", piece);
    }
    free(state);
}

int main(void)
{
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * i >> 7);
    sums_of_any_length_and_alignment_are_xxhashs();
    a_sum_in_pieces_is_the_sum_of_all();
    if (!failures)
        puts("xxh3: sums are the same however they are made");
    return failures != 0;
}
