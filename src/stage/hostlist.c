/* See hostlist.h. A list is never expanded: a name is matched against it, piece by piece. */
#include "stage/hostlist.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_DIGITS 18u

static size_t digits_at(const char *text)
{
    size_t n = 0;
    while (n < MAX_DIGITS && isdigit((unsigned char)text[n]))
        n++;
    return n;
}

static uint64_t value_of(const char *text, size_t digits)
{
    uint64_t value = 0;
    for (size_t i = 0; i < digits; i++)
        value = value * 10 + (uint64_t)(text[i] - '0');
    return value;
}

/* Whether the number text[0..digits) lies in the range at `at`, as the range writes its numbers. */
static int in_range(const char *at, const char *text, size_t digits)
{
    size_t low = digits_at(at);
    const char *last = at[low] == '-' ? at + low + 1 : at;
    uint64_t value = value_of(text, digits);
    if (!low || !digits || value < value_of(at, low) || value > value_of(last, digits_at(last)))
        return 0;
    return text[0] != '0' || digits == 1 ? digits >= low : digits == low;
}

static int element_has(const char *at, const char *stop, const char *host);

/* at: behind a '['. Tries every length of number that the host has there. */
static int brackets_have(const char *at, const char *stop, const char *host)
{
    const char *close = memchr(at, ']', (size_t)(stop - at));
    for (size_t n = 1; close && n <= digits_at(host); n++)
        for (const char *range = at; range < close; range++) {
            if (in_range(range, host, n) && element_has(close + 1, stop, host + n))
                return 1;
            while (range < close && *range != ',')
                range++;
        }
    return 0;
}

static int element_has(const char *at, const char *stop, const char *host)
{
    for (; at < stop; at++, host++) {
        if (*at == '[')
            return brackets_have(at + 1, stop, host);
        if (*at != *host)
            return 0;
    }
    return *host == '\0';
}

int hostlist_has(const char *list, const char *host)
{
    if (strcasecmp(list, "ALL") == 0)
        return 1;
    while (*list) {
        const char *stop = list;
        for (int inside = 0; *stop && (inside || *stop != ','); stop++)
            inside = *stop == '[' ? 1 : *stop == ']' ? 0 : inside;
        if (element_has(list, stop, host))
            return 1;
        list = *stop ? stop + 1 : stop;
    }
    return 0;
}
