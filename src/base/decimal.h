/* Numbers with a decimal point, whatever the language of the process puts there. */
#ifndef BRG_BASE_DECIMAL_H
#define BRG_BASE_DECIMAL_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

struct decimal {
    char text[32];
};

/* `n` of the last of so many decimals: 1234 with 3 is 1.234. */
static inline struct decimal decimal_of(uint64_t n, unsigned decimals)
{
    struct decimal d;
    uint64_t one = 1;
    for (unsigned i = 0; i < decimals; i++)
        one *= 10;
    snprintf(d.text, sizeof d.text, "%" PRIu64 ".%0*" PRIu64, n / one, (int)decimals, n % one);
    return d;
}

/* The same of nanoseconds, as seconds; at most 9 decimals. */
static inline struct decimal decimal_seconds(uint64_t ns, unsigned decimals)
{
    uint64_t last = 1000000000;
    for (unsigned i = 0; i < decimals; i++)
        last /= 10;
    return decimal_of((ns + last / 2) / last, decimals);
}

#endif
