/* The least that a C test needs: a claim that fails is printed, and the program ends with 1. */
#ifndef BRG_TESTS_CHECK_H
#define BRG_TESTS_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((unused)) static int failed_checks;

#define CHECK(claim)                                                    \
    do {                                                                \
        if (!(claim)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #claim); \
            failed_checks++;                                            \
        }                                                               \
    } while (0)

#define CHECK_TEXT(have, want)                                                                    \
    do {                                                                                          \
        if (strcmp(have, want) != 0) {                                                            \
            fprintf(stderr, "%s:%d: %s is \"%s\", not \"%s\"\n", __FILE__, __LINE__, #have, have, \
                    want);                                                                        \
            failed_checks++;                                                                      \
        }                                                                                         \
    } while (0)

/* For what a test cannot go on without. */
#define NEED(claim)                                                           \
    do {                                                                      \
        if (!(claim)) {                                                       \
            fprintf(stderr, "%s:%d: needs %s\n", __FILE__, __LINE__, #claim); \
            exit(1);                                                          \
        }                                                                     \
    } while (0)

#define RUN(test)                                                            \
    do {                                                                     \
        int before = failed_checks;                                          \
        test();                                                              \
        printf("%s %s\n", failed_checks == before ? "ok  " : "FAIL", #test); \
    } while (0)

#endif
