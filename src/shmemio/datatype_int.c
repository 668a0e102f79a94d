/* Constructors that take arrays of int, as MPI's do, and those of several types or
 * distributions. */
#include <stdlib.h>

#include "base/error.h"
#include "shmemio/datatype.h"
#include "shmemio/inside.h"

/* n numbers in 64 bits, to be freed; of negative n none. NULL: no memory. */
static SHMEM_Count *widen(const int *numbers, SHMEM_Count n)
{
    SHMEM_Count *wide = malloc((n > 0 ? (size_t)n : 1) * sizeof *wide);
    for (SHMEM_Count i = 0; wide && i < n; i++)
        wide[i] = numbers[i];
    return wide;
}

static SHMEM_Count *widen_places(const SHMEM_Aint *places, SHMEM_Count n)
{
    SHMEM_Count *wide = malloc((n > 0 ? (size_t)n : 1) * sizeof *wide);
    for (SHMEM_Count i = 0; wide && i < n; i++)
        wide[i] = places[i];
    return wide;
}

static int no_memory(void)
{
    return shmemio_refuse(-ENOMEM, "no memory for a datatype");
}

int SHMEM_Type_indexed(int count, const int lengths[], const int displacements[],
                       SHMEM_Datatype old, SHMEM_Datatype *type)
{
    SHMEM_Count *n = widen(lengths, count), *at = widen(displacements, count);
    int code = n && at ? SHMEM_Type_indexed_c(count, n, at, old, type) : no_memory();
    free(n);
    free(at);
    return code;
}

int SHMEM_Type_create_hindexed(int count, const int lengths[],
                               const SHMEM_Aint displacements_bytes[], SHMEM_Datatype old,
                               SHMEM_Datatype *type)
{
    SHMEM_Count *n = widen(lengths, count), *at = widen_places(displacements_bytes, count);
    int code = n && at ? SHMEM_Type_create_hindexed_c(count, n, at, old, type) : no_memory();
    free(n);
    free(at);
    return code;
}

int SHMEM_Type_create_indexed_block(int count, int length, const int displacements[],
                                    SHMEM_Datatype old, SHMEM_Datatype *type)
{
    SHMEM_Count *at = widen(displacements, count);
    int code = at ? SHMEM_Type_create_indexed_block_c(count, length, at, old, type) : no_memory();
    free(at);
    return code;
}

int SHMEM_Type_create_hindexed_block(int count, int length, const SHMEM_Aint displacements_bytes[],
                                     SHMEM_Datatype old, SHMEM_Datatype *type)
{
    SHMEM_Count *at = widen_places(displacements_bytes, count);
    int code = at ? SHMEM_Type_create_hindexed_block_c(count, length, at, old, type) : no_memory();
    free(at);
    return code;
}

int SHMEM_Type_create_struct_c(SHMEM_Count count, const SHMEM_Count lengths[],
                               const SHMEM_Count displacements_bytes[], const SHMEM_Datatype olds[],
                               SHMEM_Datatype *type)
{
    struct brg_error failure = NO_FAILURE;
    size_t n = count > 0 ? (size_t)count : 0, have = 0;
    struct type **of = malloc((n ? n : 1) * sizeof(struct type *)), *made = NULL;
    int rc = of ? 0 : brg_error_set(&failure, -ENOMEM, "no memory for a datatype");
    while (!rc && have < n) {
        rc = datatype_of(olds[have], 0, &of[have], &failure);
        have += !rc;
    }
    rc = rc ? rc : type_struct(count, lengths, displacements_bytes, of, &made, &failure);
    while (have)
        type_release(of[--have]);
    free(of);
    return datatype_end(rc, NULL, made, type, &failure);
}

int SHMEM_Type_create_struct(int count, const int lengths[], const SHMEM_Aint displacements_bytes[],
                             const SHMEM_Datatype olds[], SHMEM_Datatype *type)
{
    SHMEM_Count *n = widen(lengths, count), *at = widen_places(displacements_bytes, count);
    int code = n && at ? SHMEM_Type_create_struct_c(count, n, at, olds, type) : no_memory();
    free(n);
    free(at);
    return code;
}

int SHMEM_Type_create_subarray(int ndims, const int sizes[], const int subsizes[],
                               const int starts[], int order, SHMEM_Datatype old,
                               SHMEM_Datatype *type)
{
    SHMEM_Count *all = widen(sizes, ndims), *part = widen(subsizes, ndims),
                *from = widen(starts, ndims);
    int code = all && part && from
                   ? SHMEM_Type_create_subarray_c(ndims, all, part, from, order, old, type)
                   : no_memory();
    free(all);
    free(part);
    free(from);
    return code;
}

static int distribution_of(int given, enum type_distribution *out, struct brg_error *err)
{
    static const enum type_distribution known[] = {
        [SHMEM_DISTRIBUTE_BLOCK] = TYPE_BLOCK,
        [SHMEM_DISTRIBUTE_CYCLIC] = TYPE_CYCLIC,
        [SHMEM_DISTRIBUTE_NONE] = TYPE_NONE,
    };
    if (given < 0 || given > SHMEM_DISTRIBUTE_NONE)
        return brg_error_set(err, -EINVAL, "%d is no SHMEM_DISTRIBUTE_*", given);
    *out = known[given];
    return 0;
}

int SHMEM_Type_create_darray_c(int size, int rank, int ndims, const SHMEM_Count gsizes[],
                               const int distributions[], const int arguments[], const int psizes[],
                               int order, SHMEM_Datatype old, SHMEM_Datatype *type)
{
    struct brg_error failure = NO_FAILURE;
    struct type *of = NULL, *made = NULL;
    size_t n = ndims > 0 ? (size_t)ndims : 0;
    enum type_distribution *spread = malloc((n ? n : 1) * sizeof *spread);
    SHMEM_Count *blocks = widen(arguments, ndims);
    int rc = spread && blocks ? 0 : brg_error_set(&failure, -ENOMEM, "no memory for a datatype");
    for (size_t i = 0; !rc && i < n; i++)
        rc = distribution_of(distributions[i], &spread[i], &failure);
    if (!rc && order != SHMEM_ORDER_C && order != SHMEM_ORDER_FORTRAN)
        rc = brg_error_set(&failure, -EINVAL, "order %d is neither SHMEM_ORDER_C nor _FORTRAN",
                           order);
    rc = rc ? rc : datatype_of(old, 0, &of, &failure);
    rc = rc ? rc
            : type_darray(size, rank, ndims, gsizes, spread, blocks, psizes,
                          order == SHMEM_ORDER_C ? TYPE_ORDER_C : TYPE_ORDER_FORTRAN, of, &made,
                          &failure);
    free(spread);
    free(blocks);
    return datatype_end(rc, of, made, type, &failure);
}

int SHMEM_Type_create_darray(int size, int rank, int ndims, const int gsizes[],
                             const int distributions[], const int arguments[], const int psizes[],
                             int order, SHMEM_Datatype old, SHMEM_Datatype *type)
{
    SHMEM_Count *all = widen(gsizes, ndims);
    int code = all ? SHMEM_Type_create_darray_c(size, rank, ndims, all, distributions, arguments,
                                                psizes, order, old, type)
                   : no_memory();
    free(all);
    return code;
}
