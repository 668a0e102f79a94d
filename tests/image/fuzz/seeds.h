/* The seed corpus of the image fuzzer, made by the writer. */
#ifndef BRG_TESTS_SEEDS_H
#define BRG_TESTS_SEEDS_H

#include <stddef.h>
#include <stdint.h>

enum {
    SEEDS = 6
};

struct seed {
    uint8_t *bytes;
    size_t n;
};

/* Fills all SEEDS of them; uses the current folder for a moment. */
size_t seeds_make(struct seed seeds[SEEDS]);

#endif
