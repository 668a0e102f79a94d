/* Datatypes, as MPI has them: which bytes of memory or of a file are meant, and in which order.
 * Pure: no MPI, no I/O. Types do not change, and are shared by counting who uses them.
 *
 * The constructors are MPI's (MPI 4.0, chapter 5), by their large-count forms: counts, lengths and
 * displacements are 64-bit, signed where MPI's are. What a type is made of stays the caller's and
 * may be released at once. Every constructor sets *out only where it returns 0; otherwise it
 * returns, with *err about the argument that was wrong:
 *   -EINVAL     an argument that MPI forbids
 *   -EOVERFLOW  a size or a place past 63 bits
 *   -ELOOP      more than LAYOUT_MAX_DEPTH rows and lists inside each other, after merging
 *   -ENOMEM
 * Memory: of a list, as much as the list; of everything else a constant, whatever the counts. */
#ifndef BRG_TYPE_TYPE_H
#define BRG_TYPE_TYPE_H

#include "base/error.h"
#include "type/layout.h"

struct type {
    atomic_uint users;
    struct placed data;
    int64_t lb, ub; /* where not set by hand: the data's own; 0 where there are none */
    uint8_t set_lb, set_ub;
};

enum type_order {
    TYPE_ORDER_C,
    TYPE_ORDER_FORTRAN
};
enum type_distribution {
    TYPE_BLOCK,
    TYPE_CYCLIC,
    TYPE_NONE
};
#define TYPE_DEFAULT_ARGUMENT (-1) /* of a distribution */

/* `bytes` bytes that lie together: every type of a language. 0 is allowed. */
int type_basic(int64_t bytes, struct type **out, struct brg_error *err);
int type_contiguous(int64_t count, const struct type *old, struct type **out,
                    struct brg_error *err);
int type_vector(int64_t count, int64_t length, int64_t stride, const struct type *old,
                struct type **out, struct brg_error *err);
int type_hvector(int64_t count, int64_t length, int64_t stride_bytes, const struct type *old,
                 struct type **out, struct brg_error *err);
int type_indexed(int64_t count, const int64_t *lengths, const int64_t *displacements,
                 const struct type *old, struct type **out, struct brg_error *err);
int type_hindexed(int64_t count, const int64_t *lengths, const int64_t *displacements_bytes,
                  const struct type *old, struct type **out, struct brg_error *err);
int type_indexed_block(int64_t count, int64_t length, const int64_t *displacements,
                       const struct type *old, struct type **out, struct brg_error *err);
int type_hindexed_block(int64_t count, int64_t length, const int64_t *displacements_bytes,
                        const struct type *old, struct type **out, struct brg_error *err);
int type_struct(int64_t count, const int64_t *lengths, const int64_t *displacements_bytes,
                struct type *const *olds, struct type **out, struct brg_error *err);
int type_resized(const struct type *old, int64_t lb, int64_t extent, struct type **out,
                 struct brg_error *err);
int type_subarray(int ndims, const int64_t *sizes, const int64_t *subsizes, const int64_t *starts,
                  enum type_order order, const struct type *old, struct type **out,
                  struct brg_error *err);
/* Process `rank` of `size` in a grid of psizes (in C order, whatever `order` is). */
int type_darray(int size, int rank, int ndims, const int64_t *gsizes,
                const enum type_distribution *distributions, const int64_t *arguments,
                const int *psizes, enum type_order order, const struct type *old, struct type **out,
                struct brg_error *err);

/* MPI_Type_dup, as types do not change. */
struct type *type_share(struct type *type);
/* `type` may be NULL. */
void type_release(struct type *type);

/* Bytes of data. */
static inline uint64_t type_size(const struct type *type)
{
    return type->data.layout ? type->data.layout->bytes : 0;
}

/* From one copy to the next. */
static inline int64_t type_extent(const struct type *type)
{
    return type->ub - type->lb;
}

/* Where the data begin and end; 0 where there are none. */
static inline int64_t type_true_lb(const struct type *type)
{
    return type->data.layout ? type->data.at + type->data.layout->low : 0;
}

static inline int64_t type_true_ub(const struct type *type)
{
    return type->data.layout ? type->data.at + type->data.layout->high : 0;
}

#endif
