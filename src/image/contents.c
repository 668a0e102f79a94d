/* From a range of the raw stream to contents, and from contents to the entries that share them. */
#include "image/format.h"

/* The first content that ends after raw_off; n_contents if none does. */
static uint32_t first_ending_after(const struct brg_index *x, uint64_t raw_off)
{
    const struct brg_content *contents = brg_contents(x);
    uint32_t low = 0, high = x->n_contents;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (contents[mid].raw_off + contents[mid].size > raw_off)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

void brg_contents_in(const struct brg_index *x, uint64_t raw_off, uint64_t raw_end, uint32_t *first,
                     uint32_t *end)
{
    uint32_t low = first_ending_after(x, raw_off), high = low;
    if (raw_end > raw_off) {
        high = first_ending_after(x, raw_end - 1);
        /* That one ends at or after raw_end; it counts if it also starts before. */
        if (high < x->n_contents && brg_contents(x)[high].raw_off < raw_end)
            high++;
    }
    *first = low;
    *end = high;
}

void brg_content_entries(const struct brg_index *x, uint32_t *first, uint32_t *entries)
{
    const struct brg_entry *all = brg_entries(x);
    for (uint32_t c = 0; c <= x->n_contents; c++)
        first[c] = 0;
    for (uint32_t i = 0; i < x->n_entries; i++)
        if (all[i].content != BRG_NONE)
            first[all[i].content]++;
    uint32_t sum = 0;
    for (uint32_t c = 0; c <= x->n_contents; c++) {
        sum += first[c];
        first[c] = sum; /* the end; filling from behind turns it into the start */
    }
    for (uint32_t i = x->n_entries; i-- > 0;)
        if (all[i].content != BRG_NONE)
            entries[--first[all[i].content]] = i;
}
