/* MPI's own datatypes whose copies lie one after another, without gaps: what most memory is of.
 *
 * They never change and are never freed, so that what was decoded once is known by its handle, to
 * all threads; a program's own datatypes are not, as their handles come again. */
#ifndef BRG_TYPE_PACKED_H
#define BRG_TYPE_PACKED_H

#include "mpi/types.h"

/* Bytes of one; 0: it is another, or none that type_decode has come by. */
uint64_t packed_bytes(mpi_handle type);

/* What MPI has told of a datatype; kept if it is such a one. */
void packed_learn(mpi_handle type, const struct mpi_contents *contents);

#endif
