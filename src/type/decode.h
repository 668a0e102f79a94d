/* Our type of an MPI datatype, from MPI's own description of it. */
#ifndef BRG_TYPE_DECODE_H
#define BRG_TYPE_DECODE_H

#include "mpi/types.h"
#include "type/type.h"

/* Datatypes inside each other, as MPI tells of them. */
#define DECODE_MAX_DEPTH 1000

/* 0, with *out the caller's, or -errno with *err:
 *   -EINVAL     it is MPI_DATATYPE_NULL
 *   -ENOTSUP    a constructor that is not known; or MPI measures the type otherwise than what it
 *               tells of it comes to, so that nothing should be built on it
 *   -ELOOP      more than DECODE_MAX_DEPTH datatypes in each other, or LAYOUT_MAX_DEPTH left
 *   -EOVERFLOW, -ENOMEM, -ECOMM
 * Bounds are MPI's, with the padding of structs that our constructors do not add. Every handle that
 * MPI gives out on the way is freed. A datatype that lies in another one many times is looked at
 * once; one that was decoded before keeps what came of it. Not collective. */
int type_decode(const struct mpi_types *mpi, mpi_handle handle, struct type **out,
                struct brg_error *err);

/* 1: the bytes of `count` > 0 copies of a datatype lie together: *bytes, from *at on. 0: they do
 * not, or it has not been decoded before. Not collective. */
int type_run(const struct mpi_types *mpi, mpi_handle handle, uint64_t count, uint64_t *bytes,
             int64_t *at);

#endif
