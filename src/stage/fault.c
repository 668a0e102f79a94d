/* See fault.h. */
#include "stage/fault.h"

#include <stdlib.h>
#include <string.h>

struct fault fault_chosen;

void fault_start(uint32_t rank)
{
    static const struct {
        enum fault_point point;
        const char *name;
    } points[] = {
#define X(symbol, name) {symbol, name},
        FAULT_POINTS(X)
#undef X
    };
    const char *text = getenv("BRIGADE_FAULT");
    if (!text)
        return;
    const char *at = strchr(text, '@'), *colon = strchr(text, ':');
    if (at && strtoul(at + 1, NULL, 10) != rank)
        return;
    size_t length = strcspn(text, ":@");
    for (size_t i = 0; i < sizeof points / sizeof *points; i++)
        if (strlen(points[i].name) == length && memcmp(points[i].name, text, length) == 0)
            fault_chosen.point = points[i].point;
    fault_chosen.n = colon ? strtoull(colon + 1, NULL, 10) : 0;
}
