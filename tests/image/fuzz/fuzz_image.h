/* libFuzzer's entry point; the replay calls it too. */
#ifndef BRG_TESTS_FUZZ_IMAGE_H
#define BRG_TESTS_FUZZ_IMAGE_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
