/* One rank's request, moved by that rank itself between its memory and the store: no other rank is
 * asked or told. Pieces that lie together in the file are written as one; what is read with small
 * gaps between is read as one.
 *
 * Nothing is written that the request does not name: to read what lies between and write it again,
 * as peers do, takes locks, or what others write there meanwhile is lost. */
#ifndef BRG_MOVE_ALONE_H
#define BRG_MOVE_ALONE_H

#include "move/request.h"
#include "store/store.h"

/* 0 or the failure; what comes after it in the file was not written. */
int alone_write(struct io_store *store, const struct io_request *request, struct brg_error *err);

/* *got: bytes of the request before the end of the file; the others are left as they are. */
int alone_read(struct io_store *store, const struct io_request *request, uint64_t *got,
               struct brg_error *err);

#endif
