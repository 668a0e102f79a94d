/* Handles of datatypes: what a program makes, commits and frees. The types are type/type.h's. */
#include <limits.h>
#include <stdlib.h>

#include "base/error.h"
#include "shmemio/datatype.h"
#include "shmemio/inside.h"

/* Basic types are numbers that no address can be: their size in the low byte. */
#define BASIC_END 65536u

int datatype_is_basic(SHMEM_Datatype handle)
{
    return (uintptr_t)handle < BASIC_END;
}

int datatype_of(SHMEM_Datatype handle, int ready, struct type **type, struct brg_error *err)
{
    uintptr_t number = (uintptr_t)handle;
    if (datatype_is_basic(handle)) {
        if (number < 256 || number % 256 == 0)
            return brg_error_set(err, -WRONG_TYPE, "%#lx is no datatype%s", (unsigned long)number,
                                 number ? "" : ": it is SHMEM_DATATYPE_NULL");
        return type_basic((int64_t)(number % 256), type, err);
    }
    if (ready && !handle->committed)
        return brg_error_set(err, -WRONG_TYPE,
                             "the datatype is not committed: call SHMEM_Type_commit first");
    *type = type_share(handle->type);
    return 0;
}

SHMEM_Datatype datatype_make(struct type *type, int committed)
{
    struct shmem_datatype *made = malloc(sizeof *made);
    if (!made) {
        type_release(type);
        return SHMEM_DATATYPE_NULL;
    }
    *made = (struct shmem_datatype){.type = type, .committed = committed};
    return made;
}

int datatype_end(int rc, struct type *old, struct type *made, SHMEM_Datatype *type,
                 const struct brg_error *failure)
{
    type_release(old);
    if (rc)
        return shmemio_end(failure);
    SHMEM_Datatype handle = datatype_make(made, 0);
    if (!handle)
        return shmemio_refuse(-ENOMEM, "no memory for a datatype");
    *type = handle;
    return SHMEM_SUCCESS;
}

/* A constructor of one old type: `call` makes `made` of `of`. */
#define MAKE(call)                                          \
    struct brg_error failure = NO_FAILURE, *err = &failure; \
    struct type *of = NULL, *made = NULL;                   \
    int rc = datatype_of(old, 0, &of, err);                 \
    rc = rc ? rc : (call);                                  \
    return datatype_end(rc, of, made, type, err)

int SHMEM_Type_contiguous(SHMEM_Count count, SHMEM_Datatype old, SHMEM_Datatype *type)
{
    MAKE(type_contiguous(count, of, &made, err));
}

int SHMEM_Type_vector(SHMEM_Count count, SHMEM_Count length, SHMEM_Count stride, SHMEM_Datatype old,
                      SHMEM_Datatype *type)
{
    MAKE(type_vector(count, length, stride, of, &made, err));
}

int SHMEM_Type_create_hvector(SHMEM_Count count, SHMEM_Count length, SHMEM_Count stride_bytes,
                              SHMEM_Datatype old, SHMEM_Datatype *type)
{
    MAKE(type_hvector(count, length, stride_bytes, of, &made, err));
}

int SHMEM_Type_indexed_c(SHMEM_Count count, const SHMEM_Count lengths[],
                         const SHMEM_Count displacements[], SHMEM_Datatype old,
                         SHMEM_Datatype *type)
{
    MAKE(type_indexed(count, lengths, displacements, of, &made, err));
}

int SHMEM_Type_create_hindexed_c(SHMEM_Count count, const SHMEM_Count lengths[],
                                 const SHMEM_Count displacements_bytes[], SHMEM_Datatype old,
                                 SHMEM_Datatype *type)
{
    MAKE(type_hindexed(count, lengths, displacements_bytes, of, &made, err));
}

int SHMEM_Type_create_indexed_block_c(SHMEM_Count count, SHMEM_Count length,
                                      const SHMEM_Count displacements[], SHMEM_Datatype old,
                                      SHMEM_Datatype *type)
{
    MAKE(type_indexed_block(count, length, displacements, of, &made, err));
}

int SHMEM_Type_create_hindexed_block_c(SHMEM_Count count, SHMEM_Count length,
                                       const SHMEM_Count displacements_bytes[], SHMEM_Datatype old,
                                       SHMEM_Datatype *type)
{
    MAKE(type_hindexed_block(count, length, displacements_bytes, of, &made, err));
}

int SHMEM_Type_create_resized(SHMEM_Datatype old, SHMEM_Aint lb, SHMEM_Aint extent,
                              SHMEM_Datatype *type)
{
    MAKE(type_resized(of, lb, extent, &made, err));
}

static int subarray(int ndims, const SHMEM_Count *sizes, const SHMEM_Count *subsizes,
                    const SHMEM_Count *starts, int order, struct type *of, struct type **made,
                    struct brg_error *err)
{
    if (order != SHMEM_ORDER_C && order != SHMEM_ORDER_FORTRAN)
        return brg_error_set(err, -EINVAL, "order %d is neither SHMEM_ORDER_C nor _FORTRAN", order);
    return type_subarray(ndims, sizes, subsizes, starts,
                         order == SHMEM_ORDER_C ? TYPE_ORDER_C : TYPE_ORDER_FORTRAN, of, made, err);
}

int SHMEM_Type_create_subarray_c(int ndims, const SHMEM_Count sizes[], const SHMEM_Count subsizes[],
                                 const SHMEM_Count starts[], int order, SHMEM_Datatype old,
                                 SHMEM_Datatype *type)
{
    MAKE(subarray(ndims, sizes, subsizes, starts, order, of, &made, err));
}

/* ---- handles ---- */

int SHMEM_Type_dup(SHMEM_Datatype old, SHMEM_Datatype *type)
{
    struct brg_error failure = NO_FAILURE;
    struct type *made = NULL;
    int rc = datatype_of(old, 0, &made, &failure);
    int code = datatype_end(rc, NULL, made, type, &failure);
    if (!code)
        (*type)->committed = datatype_is_basic(old) || old->committed;
    return code;
}

/* Neither null nor, if it is to be changed, a basic one. */
static int check(SHMEM_Datatype *type, const char *verb)
{
    if (!type || datatype_is_basic(*type))
        return shmemio_refuse(-WRONG_TYPE, "%s cannot be %s",
                              type && *type ? "a basic datatype" : "SHMEM_DATATYPE_NULL", verb);
    return SHMEM_SUCCESS;
}

int SHMEM_Type_commit(SHMEM_Datatype *type)
{
    if (type && *type && datatype_is_basic(*type))
        return SHMEM_SUCCESS;
    int code = check(type, "committed");
    if (!code)
        (*type)->committed = 1;
    return code;
}

int SHMEM_Type_free(SHMEM_Datatype *type)
{
    int code = check(type, "freed");
    if (code)
        return code;
    type_release((*type)->type);
    free(*type);
    *type = SHMEM_DATATYPE_NULL;
    return SHMEM_SUCCESS;
}

/* ---- asking ---- */

int SHMEM_Type_size_c(SHMEM_Datatype type, SHMEM_Count *bytes)
{
    struct brg_error failure = NO_FAILURE;
    struct type *of = NULL;
    if (!datatype_of(type, 0, &of, &failure))
        *bytes = (SHMEM_Count)type_size(of);
    type_release(of);
    return shmemio_end(&failure);
}

int SHMEM_Type_size(SHMEM_Datatype type, int *bytes)
{
    SHMEM_Count all;
    int code = SHMEM_Type_size_c(type, &all);
    if (!code)
        *bytes = all > INT_MAX ? SHMEM_UNDEFINED : (int)all;
    return code;
}

int SHMEM_Type_get_extent(SHMEM_Datatype type, SHMEM_Aint *lb, SHMEM_Aint *extent)
{
    struct brg_error failure = NO_FAILURE;
    struct type *of = NULL;
    if (!datatype_of(type, 0, &of, &failure)) {
        *lb = of->lb;
        *extent = type_extent(of);
    }
    type_release(of);
    return shmemio_end(&failure);
}

int SHMEM_Type_get_true_extent(SHMEM_Datatype type, SHMEM_Aint *lb, SHMEM_Aint *extent)
{
    struct brg_error failure = NO_FAILURE;
    struct type *of = NULL;
    if (!datatype_of(type, 0, &of, &failure)) {
        *lb = type_true_lb(of);
        *extent = type_true_ub(of) - type_true_lb(of);
    }
    type_release(of);
    return shmemio_end(&failure);
}

int SHMEM_Get_count_c(const SHMEM_Status *status, SHMEM_Datatype type, SHMEM_Count *count)
{
    SHMEM_Count bytes;
    int code = SHMEM_Type_size_c(type, &bytes);
    if (code)
        return code;
    if (bytes)
        *count = status->bytes % bytes ? SHMEM_UNDEFINED : status->bytes / bytes;
    else
        *count = status->bytes ? SHMEM_UNDEFINED : 0;
    return SHMEM_SUCCESS;
}

int SHMEM_Get_count(const SHMEM_Status *status, SHMEM_Datatype type, int *count)
{
    SHMEM_Count all;
    int code = SHMEM_Get_count_c(status, type, &all);
    if (!code)
        *count = all > INT_MAX ? SHMEM_UNDEFINED : (int)all;
    return code;
}
