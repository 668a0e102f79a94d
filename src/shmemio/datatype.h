/* What the two files of constructors share. */
#ifndef BRG_SHMEMIO_DATATYPE_H
#define BRG_SHMEMIO_DATATYPE_H

#include "shmemio/inside.h"

/* The end of a constructor: releases `old` (may be NULL); rc 0: *type becomes a handle of `made`,
 * whose share it takes over; else `failure` is told. */
int datatype_end(int rc, struct type *old, struct type *made, SHMEM_Datatype *type,
                 const struct brg_error *failure);

#endif
