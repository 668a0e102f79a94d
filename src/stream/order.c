/* See order.h. Each node gets a key a level: the lowest rank below the same switch. Nodes sorted by
 * these keys are in the order wanted. */
#include "stream/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct place {
    const char *address;
    uint32_t rank;
    uint32_t keys[ORDER_LEVELS];
};

/* Bytes of an address down to a level, or all of it if it does not go that deep. */
static size_t length_to(const char *address, uint32_t level)
{
    const char *at = address;
    for (; *at; at++)
        if (*at == '.' && --level == 0)
            break;
    return (size_t)(at - address);
}

static int same_to(const char *a, const char *b, uint32_t level)
{
    size_t n = length_to(a, level);
    return n == length_to(b, level) && memcmp(a, b, n) == 0;
}

/* A dot sorts before all else, so that what shares a switch stands together at every level. */
static int letter(char c)
{
    return c == '\0' ? 0 : c == '.' ? 1 : 2 + (unsigned char)c;
}

static int compare_addresses(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    const char *s = x->address, *t = y->address;
    for (; *s && *s == *t; s++)
        t++;
    int by_text = letter(*s) - letter(*t);
    return by_text ? by_text : x->rank < y->rank ? -1 : x->rank > y->rank;
}

static int compare_keys(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    for (uint32_t level = 0; level < ORDER_LEVELS; level++)
        if (x->keys[level] != y->keys[level])
            return x->keys[level] < y->keys[level] ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* places are sorted by address: those of one switch are a run. */
static void find_keys(struct place *places, uint32_t n, uint32_t level)
{
    for (uint32_t first = 0, stop; first < n; first = stop) {
        uint32_t least = places[first].rank;
        for (stop = first + 1; stop < n; stop++) {
            if (!same_to(places[first].address, places[stop].address, level))
                break;
            least = places[stop].rank < least ? places[stop].rank : least;
        }
        for (uint32_t i = first; i < stop; i++)
            places[i].keys[level - 1] = least;
    }
}

int order_by_address(const char *addresses, uint32_t n, uint32_t *order)
{
    struct place *places = calloc(n ? n : 1, sizeof *places);
    if (!places)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++) {
        places[i].address = addresses + (size_t)i * ORDER_ADDRESS_BYTES;
        places[i].rank = i;
    }
    qsort(places, n, sizeof *places, compare_addresses);
    for (uint32_t level = 1; level <= ORDER_LEVELS; level++)
        find_keys(places, n, level);
    qsort(places, n, sizeof *places, compare_keys);
    for (uint32_t i = 0; i < n; i++)
        order[i] = places[i].rank;
    free(places);
    return 0;
}

uint32_t order_crossings(const char *addresses, const uint32_t *order, uint32_t n, uint32_t level)
{
    uint32_t crossings = 0;
    for (uint32_t i = 0; n > 1 && i < n; i++) {
        const char *a = addresses + (size_t)order[i] * ORDER_ADDRESS_BYTES;
        const char *b = addresses + (size_t)order[(i + 1) % n] * ORDER_ADDRESS_BYTES;
        crossings += !same_to(a, b, level);
    }
    return crossings;
}
