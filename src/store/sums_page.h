/* The pages of several nodes as one. Each node's ranks put the sums and marks of the first
 * SUMS_IN_MEMORY blocks on a page of their own (sums_pad.h); when all is written, the least of what
 * the nodes say of each block tells what all of them know. A block that has a sum of one node, or
 * the same of several, has that; one that is marked, or of which they say different sums, must be
 * read back: who of them wrote last, no page tells. Pure. */
#ifndef BRG_STORE_SUMS_PAGE_H
#define BRG_STORE_SUMS_PAGE_H

#include <stdint.h>

#include "store/sums.h"

/* Two a block, and whether there is a file of further pages. */
#define SUMS_PAGE_VALUES (2 * (int)SUMS_IN_MEMORY + 1)

/* What a page says of its first n blocks: that many values, returned. Of each, the least of all
 * nodes' is to be taken. */
int sums_page_say(const char *page, uint32_t n, int64_t *values);

/* These come back: the page is that of all nodes. Returns whether some block must be read back. */
int sums_page_hear(char *page, uint32_t n, const int64_t *values);

#endif
