/* One rank's request, moved by that rank itself between its memory and the store: no other rank is
 * asked or told. Pieces that lie together in the file are written as one; what is read with small
 * gaps between is read as one. What lies apart on a disk is asked for many pieces ahead.
 *
 * Nothing is written that the request does not name: to read what lies between and write it again,
 * as peers do, takes locks, or what others write there meanwhile is lost. */
#ifndef BRG_MOVE_ALONE_H
#define BRG_MOVE_ALONE_H

#include "move/request.h"
#include "store/store.h"

/* Where a request's bytes would be read from, by one of them; of one run nothing need be known:
 * STORE_IN_MEMORY. Where several ranks ask, each looks elsewhere (the nth of so many): looking at
 * one byte may bring those behind it into memory. */
enum store_where alone_where(struct io_store *store, const struct io_request *request, uint32_t nth,
                             uint32_t of);

/* 0 or the failure; what comes after it in the file was not written. where: STORE_IN_MEMORY where
 * nothing need be asked for, or as alone_where says. */
int alone_write(struct io_store *store, const struct io_request *request, enum store_where where,
                struct brg_error *err);

/* *got: bytes of the request before the end of the file; the others are left as they are. */
int alone_read(struct io_store *store, const struct io_request *request, enum store_where where,
               uint64_t *got, struct brg_error *err);

#endif
