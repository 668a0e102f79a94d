/* What request.c needs of requests that are a part of a view. */
#ifndef BRG_MOVE_REQUEST_VIEW_H
#define BRG_MOVE_REQUEST_VIEW_H

#include "move/request.h"

uint64_t view_mean_run(const struct io_request *request);

/* In the file, parts begin and end on multiples of this number's lowest bit. */
uint64_t view_bits(const struct io_request *request);

/* As cursor_seek, of a request that has bytes. */
void view_seek(struct io_cursor *cursor, uint64_t offset);

/* As cursor_next, of a cursor that has not ended. */
int view_next(struct io_cursor *cursor, uint64_t until, struct io_part *part);

#endif
