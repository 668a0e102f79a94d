/* What MPI tells of a datatype, in numbers and words that are the same for all MPIs.
 *
 * MPI describes a type by the call that made it: which constructor, and its arguments
 * (MPI_Type_get_envelope, MPI_Type_get_contents). Each binary interface has its own numbers for the
 * constructors and for some arguments; types made by the large-count calls of MPI 4 come in another
 * form. decode.c of src/type makes our types of it. */
#ifndef BRG_MPI_TYPES_H
#define BRG_MPI_TYPES_H

#include "mpi/mpi.h"

/* Fortran's old forms with INTEGER displacements are the same as the later ones: their places are
 * among the numbers. */
enum mpi_combiner {
    COMBINER_NAMED,
    COMBINER_DUP,
    COMBINER_CONTIGUOUS,
    COMBINER_VECTOR,
    COMBINER_HVECTOR,
    COMBINER_INDEXED,
    COMBINER_HINDEXED,
    COMBINER_INDEXED_BLOCK,
    COMBINER_HINDEXED_BLOCK,
    COMBINER_STRUCT,
    COMBINER_SUBARRAY,
    COMBINER_DARRAY,
    COMBINER_RESIZED,
    COMBINER_F90,        /* real, complex or integer: no contents */
    COMBINER_VALUE_INDEX /* contents: the two types */
};

struct mpi_contents {
    enum mpi_combiner combiner;
    int64_t size, lb, extent, true_lb, true_extent; /* as MPI says */
    /* in the order of the constructor's arguments, as MPI 4.0, section 5.1.13 lists them */
    size_t n_integers, n_addresses, n_counts, n_types;
    int *integers;
    intptr_t *addresses;
    int64_t *counts;
    mpi_handle *types;
};

struct mpi_types {
    /* 0, with *out for mpi_contents_drop, or -errno: -EINVAL (MPI_DATATYPE_NULL), -ENOTSUP (a
     * constructor that is not known here), -ENOMEM, -ECOMM. The handles in it are the caller's. */
    int (*tell)(mpi_handle type, struct mpi_contents *out);
    /* Frees a handle that `tell` gave; one to a predefined type stays, as MPI wants it. */
    void (*release)(mpi_handle type);
    /* One value a datatype keeps, which is not a predefined one; drop(value) is called when the
     * program frees it. NULL, or 0 or -errno. */
    void *(*kept)(mpi_handle type);
    int (*keep)(mpi_handle type, void *value, void (*drop)(void *value));
    int order_fortran; /* any other order is C's */
    int distribute_cyclic, distribute_none, default_argument;
};

void mpi_contents_drop(struct mpi_contents *contents);

#endif
