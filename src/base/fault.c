/* See fault.h. */
#include "base/fault.h"

#include <stdlib.h>
#include <string.h>

void brg_fault_read(struct brg_fault *fault, const char *const *names, size_t n_names,
                    uint32_t rank)
{
    const char *text = getenv("BRIGADE_FAULT");
    *fault = (struct brg_fault){0, 0};
    if (!text)
        return;
    const char *at = strchr(text, '@'), *colon = strchr(text, ':');
    if (at && strtoul(at + 1, NULL, 10) != rank)
        return;
    size_t length = strcspn(text, ":@");
    for (size_t i = 0; i < n_names; i++)
        if (strlen(names[i]) == length && memcmp(names[i], text, length) == 0)
            fault->point = (int)i + 1;
    fault->n = colon ? strtoull(colon + 1, NULL, 10) : 0;
}
