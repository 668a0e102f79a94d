/* What the C tests share: a claim that fails is printed with what it was about. */
#ifndef BRG_TESTS_CLAIM_H
#define BRG_TESTS_CLAIM_H

#include <stdio.h>

static int failures;

/* CHECK(claim, format, values...) */
#define CHECK(condition, ...)                                          \
    do {                                                               \
        if (!(condition)) {                                            \
            failures++;                                                \
            printf("FAIL %s:%d %s: ", __FILE__, __LINE__, #condition); \
            printf(__VA_ARGS__);                                       \
            printf("\n");                                              \
        }                                                              \
    } while (0)

#endif
