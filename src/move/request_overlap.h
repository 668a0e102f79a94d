/* Pure. Part of request.h. */
#ifndef BRG_IO_REQUEST_OVERLAP_H
#define BRG_IO_REQUEST_OVERLAP_H

#include "move/request.h"

/* n pieces sorted by offset, none of them empty, become *made (at most 2n - 1) that are sorted and
 * share no byte: a byte of several is taken from the one with the largest `at`, the last of the
 * caller's list. Takes n log n steps. -1: no memory. */
int request_part(const struct request_piece *in, size_t n, struct request_piece *out, size_t *made);

#endif
