/* See address.h. */
#include "stream/address.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The pattern says what each part is: "switch.switch.node". One without a node at its end is of a
 * kind that is not known here. */
void address_of_slurm(char *out)
{
    const char *pattern = getenv("SLURM_TOPOLOGY_ADDR_PATTERN");
    const char *address = getenv("SLURM_TOPOLOGY_ADDR");
    const char *last = pattern ? strrchr(pattern, '.') : NULL;
    memset(out, 0, ORDER_ADDRESS_BYTES);
    if (last && address && strcmp(last, ".node") == 0 && strlen(address) < ORDER_ADDRESS_BYTES)
        strcpy(out, address);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(a, b);
}

static int are_distinct(const char *addresses, uint32_t n)
{
    char *sorted = malloc((size_t)n * ORDER_ADDRESS_BYTES);
    int distinct = sorted != NULL;
    if (!sorted)
        return 0;
    memcpy(sorted, addresses, (size_t)n * ORDER_ADDRESS_BYTES);
    qsort(sorted, n, ORDER_ADDRESS_BYTES, compare_texts);
    for (uint32_t i = 0; i < n && distinct; i++) {
        const char *one = sorted + (size_t)i * ORDER_ADDRESS_BYTES;
        distinct = *one && (i == 0 || strcmp(one - ORDER_ADDRESS_BYTES, one) != 0);
    }
    free(sorted);
    return distinct;
}

int address_order(char *addresses, uint32_t n, uint32_t *order)
{
    if (!are_distinct(addresses, n))
        return -ENOENT;
    for (uint32_t i = 0; i < n; i++) {
        char *dot = strrchr(addresses + (size_t)i * ORDER_ADDRESS_BYTES, '.');
        if (dot)
            *dot = '\0'; /* what is left are switches */
    }
    return order_by_address(addresses, n, order);
}
