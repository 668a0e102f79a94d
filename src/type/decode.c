/* See decode.h. What has been decoded is remembered by its handle until the end, and the first
 * handle to it kept as long: so the number of steps is that of different datatypes, not of paths to
 * them, and no handle is given out anew while it is remembered. */
#include "type/decode.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "type/packed.h"

struct known {
    mpi_handle handle;
    struct type *type; /* NULL: a free slot */
    int ours;          /* to release */
};

struct decoding {
    const struct mpi_types *mpi;
    struct brg_error *err;
    size_t n, room; /* of the table, open addressing; room is a power of two */
    struct known *table;
    int depth;
    int predefined; /* the first one */
};

/* Takes the handle if it is ours, also where it fails. */
static int decode(struct decoding *d, mpi_handle handle, int ours, struct type **out);

/* ---- what is known ---- */

static struct known *slot_of(const struct decoding *d, mpi_handle handle)
{
    size_t i = (handle * UINT64_C(0x9e3779b97f4a7c15)) >> 32;
    for (;; i++) {
        struct known *slot = &d->table[i & (d->room - 1)];
        if (!slot->type || slot->handle == handle)
            return slot;
    }
}

static int more_room(struct decoding *d)
{
    struct known *old = d->table;
    size_t room = d->room;
    if (2 * (d->n + 1) <= room)
        return 0;
    d->table = calloc(room ? 2 * room : 16, sizeof *d->table);
    if (!d->table) {
        d->table = old;
        return -ENOMEM;
    }
    d->room = room ? 2 * room : 16;
    for (size_t i = 0; i < room; i++)
        if (old[i].type)
            *slot_of(d, old[i].handle) = old[i];
    free(old);
    return 0;
}

static void forget(struct decoding *d)
{
    for (size_t i = 0; i < d->room; i++) {
        if (d->table[i].type && d->table[i].ours)
            d->mpi->release(d->table[i].handle);
        type_release(d->table[i].type);
    }
    free(d->table);
}

/* ---- reading the arguments ---- */

/* The arguments one by one. Types made by large-count calls have their counts and places in one
 * list; Fortran's old calls have places among the integers. */
struct reading {
    const struct mpi_contents *c;
    size_t integer, address, count;
};

static int64_t next_integer(struct reading *r)
{
    if (r->integer < r->c->n_integers)
        return r->c->integers[r->integer++];
    return 0;
}

static int64_t next_count(struct reading *r)
{
    if (r->c->n_counts == 0)
        return next_integer(r);
    if (r->count < r->c->n_counts)
        return r->c->counts[r->count++];
    return 0;
}

static int64_t next_place(struct reading *r)
{
    if (r->c->n_counts || r->c->n_addresses == 0)
        return next_count(r);
    if (r->address < r->c->n_addresses)
        return r->c->addresses[r->address++];
    return 0;
}

static void next_counts(struct reading *r, int64_t n, int64_t *out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = next_count(r);
}

static int less_than_it_has(struct decoding *d)
{
    return brg_error_set(d->err, -ENOTSUP, "MPI tells less of a datatype than it has");
}

/* ---- one constructor each ---- */

/* `size` bytes; of pairs the second part lies at the end, and there may be a gap before it. */
static int make_basic(struct decoding *d, const struct mpi_contents *c, int64_t second,
                      struct type **out)
{
    struct type *parts[2] = {NULL, NULL};
    int64_t ones[2] = {1, 1}, places[2] = {0, c->true_extent - second};
    if (c->size == c->true_extent || c->size == 0)
        return type_basic(c->size, out, d->err);
    int rc = type_basic(c->size - second, &parts[0], d->err);
    if (rc == 0)
        rc = type_basic(second, &parts[1], d->err);
    if (rc == 0)
        rc = type_struct(2, ones, places, parts, out, d->err);
    type_release(parts[0]);
    type_release(parts[1]);
    return rc;
}

/* Lists of blocks. Their arrays are as long as MPI's, which are there. */
static int make_list(struct decoding *d, struct reading *r, struct type *const *olds,
                     struct type **out)
{
    enum mpi_combiner combiner = r->c->combiner;
    int same = combiner == COMBINER_INDEXED_BLOCK || combiner == COMBINER_HINDEXED_BLOCK;
    int64_t n = next_count(r), length = same ? next_count(r) : 0;
    size_t given = r->c->n_integers + r->c->n_addresses + r->c->n_counts;
    if (n < 0 || (uint64_t)n > given ||
        (combiner == COMBINER_STRUCT && (uint64_t)n > r->c->n_types))
        return less_than_it_has(d);
    int64_t *lengths = calloc(2 * (size_t)n + 1, sizeof *lengths), *places = lengths + n;
    if (!lengths)
        return brg_error_set(d->err, -ENOMEM, "no memory for a datatype of %lld blocks",
                             (long long)n);
    if (!same)
        next_counts(r, n, lengths);
    for (int64_t i = 0; i < n; i++)
        places[i] = combiner == COMBINER_INDEXED || combiner == COMBINER_INDEXED_BLOCK
                        ? next_count(r)
                        : next_place(r);
    int rc;
    switch (combiner) {
    case COMBINER_INDEXED: rc = type_indexed(n, lengths, places, olds[0], out, d->err); break;
    case COMBINER_HINDEXED: rc = type_hindexed(n, lengths, places, olds[0], out, d->err); break;
    case COMBINER_INDEXED_BLOCK:
        rc = type_indexed_block(n, length, places, olds[0], out, d->err);
        break;
    case COMBINER_HINDEXED_BLOCK:
        rc = type_hindexed_block(n, length, places, olds[0], out, d->err);
        break;
    default: rc = type_struct(n, lengths, places, olds, out, d->err); break;
    }
    free(lengths);
    return rc;
}

static enum type_order next_order(struct decoding *d, struct reading *r)
{
    return next_integer(r) == d->mpi->order_fortran ? TYPE_ORDER_FORTRAN : TYPE_ORDER_C;
}

/* Subarrays and darrays: arrays of `ndims`, all of which MPI gave. */
static int make_array(struct decoding *d, struct reading *r, const struct type *old,
                      struct type **out)
{
    int darray = r->c->combiner == COMBINER_DARRAY, rc;
    int size = darray ? (int)next_integer(r) : 0, rank = darray ? (int)next_integer(r) : 0;
    int ndims = (int)next_integer(r);
    if (ndims < 0 || (size_t)ndims > r->c->n_integers + r->c->n_counts)
        return less_than_it_has(d);
    size_t n = (size_t)ndims;
    int64_t *sizes = calloc(3 * n + 1, sizeof *sizes), *second = sizes + n, *third = second + n;
    enum type_distribution *how = calloc(n + 1, sizeof *how);
    int *psizes = calloc(n + 1, sizeof *psizes);
    if (!sizes || !how || !psizes) {
        rc = brg_error_set(d->err, -ENOMEM, "no memory for a datatype of %d dimensions", ndims);
    } else if (!darray) {
        next_counts(r, 3 * ndims, sizes);
        rc = type_subarray(ndims, sizes, second, third, next_order(d, r), old, out, d->err);
    } else {
        next_counts(r, ndims, sizes);
        for (int i = 0; i < ndims; i++) {
            int64_t kind = next_integer(r);
            how[i] = kind == d->mpi->distribute_cyclic ? TYPE_CYCLIC
                     : kind == d->mpi->distribute_none ? TYPE_NONE
                                                       : TYPE_BLOCK;
        }
        for (int i = 0; i < ndims; i++) {
            int64_t argument = next_integer(r);
            second[i] = argument == d->mpi->default_argument ? TYPE_DEFAULT_ARGUMENT : argument;
        }
        for (int i = 0; i < ndims; i++)
            psizes[i] = (int)next_integer(r);
        rc = type_darray(size, rank, ndims, sizes, how, second, psizes, next_order(d, r), old, out,
                         d->err);
    }
    free(sizes);
    free(how);
    free(psizes);
    return rc;
}

static int make(struct decoding *d, const struct mpi_contents *c, struct type *const *olds,
                struct type **out)
{
    struct reading r = {.c = c}; /* reads 0 where MPI gave less; agree() finds what that makes */
    int64_t count, length, place;
    size_t least = c->combiner == COMBINER_NAMED || c->combiner == COMBINER_F90 ? 0
                   : c->combiner == COMBINER_VALUE_INDEX                        ? 2
                                                                                : 1;
    if (c->n_types < least && c->combiner != COMBINER_STRUCT)
        return less_than_it_has(d);
    switch (c->combiner) {
    case COMBINER_NAMED: return make_basic(d, c, sizeof(int), out);
    case COMBINER_F90: return make_basic(d, c, c->size, out);
    case COMBINER_VALUE_INDEX: return make_basic(d, c, (int64_t)type_size(olds[1]), out);
    case COMBINER_DUP: *out = type_share(olds[0]); return 0;
    case COMBINER_CONTIGUOUS:
        count = next_count(&r);
        return type_contiguous(count, olds[0], out, d->err);
    case COMBINER_VECTOR:
    case COMBINER_HVECTOR:
        count = next_count(&r);
        length = next_count(&r);
        if (c->combiner == COMBINER_VECTOR)
            return type_vector(count, length, next_count(&r), olds[0], out, d->err);
        return type_hvector(count, length, next_place(&r), olds[0], out, d->err);
    case COMBINER_RESIZED:
        place = next_place(&r);
        return type_resized(olds[0], place, next_place(&r), out, d->err);
    case COMBINER_SUBARRAY:
    case COMBINER_DARRAY: return make_array(d, &r, olds[0], out);
    default: return make_list(d, &r, olds, out);
    }
}

/* ---- the tree ---- */

/* What MPI measures has to be what was made; its bounds are taken over, as structs may be padded.
 * Where the data begin and end is not compared: MPICH counts members without bytes, and Open MPI
 * 4.1 goes wrong where copies of a resized type overlap. */
static int agree(struct decoding *d, const struct mpi_contents *c, struct type **type)
{
    struct type *made = *type, *resized;
    if ((int64_t)type_size(made) != c->size)
        return brg_error_set(d->err, -ENOTSUP,
                             "MPI says that a datatype has %lld bytes, and tells of one that has "
                             "%llu",
                             (long long)c->size, (unsigned long long)type_size(made));
    if (made->lb == c->lb && type_extent(made) == c->extent)
        return 0;
    int rc = type_resized(made, c->lb, c->extent, &resized, d->err);
    if (rc)
        return rc;
    type_release(made);
    *type = resized;
    return 0;
}

/* The types of which it is made. Their handles are ours, and given up here, whatever comes. */
static int decode_olds(struct decoding *d, const struct mpi_contents *c, struct type **olds)
{
    int rc = 0;
    for (size_t i = 0; i < c->n_types; i++) {
        if (rc)
            d->mpi->release(c->types[i]);
        else
            rc = decode(d, c->types[i], 1, &olds[i]);
    }
    return rc;
}

/* *out is the caller's. */
static int make_new(struct decoding *d, const struct mpi_contents *c, struct type **out)
{
    struct type **olds = calloc(c->n_types + 1, sizeof *olds), *made = NULL;
    if (!olds)
        return brg_error_set(d->err, -ENOMEM, "no memory for a datatype");
    int rc = decode_olds(d, c, olds);
    if (rc == 0)
        rc = make(d, c, olds, &made);
    if (rc == 0)
        rc = agree(d, c, &made);
    for (size_t i = 0; i < c->n_types; i++)
        type_release(olds[i]);
    free(olds);
    if (rc)
        type_release(made);
    else
        *out = made;
    return rc;
}

static int remember(struct decoding *d, mpi_handle handle, int ours, struct type *type)
{
    int rc = more_room(d);
    if (rc)
        return brg_error_set(d->err, rc, "no memory for a datatype");
    *slot_of(d, handle) = (struct known){.handle = handle, .type = type_share(type), .ours = ours};
    d->n++;
    return 0;
}

static int tell(struct decoding *d, mpi_handle handle, struct mpi_contents *c)
{
    int rc = d->mpi->tell(handle, c);
    if (rc == -EINVAL)
        return brg_error_set(d->err, rc, "the datatype is MPI_DATATYPE_NULL");
    if (rc == -ENOTSUP)
        return brg_error_set(d->err, rc, "a datatype is made by a call that Brigade does not know");
    return rc ? brg_error_set(d->err, rc, "MPI does not tell what a datatype is") : 0;
}

static int decode_new(struct decoding *d, mpi_handle handle, int ours, struct type **out)
{
    struct mpi_contents contents;
    struct type *type = NULL;
    int rc = d->depth == DECODE_MAX_DEPTH
                 ? brg_error_set(d->err, -ELOOP, "more than %d datatypes lie in each other",
                                 DECODE_MAX_DEPTH)
                 : tell(d, handle, &contents);
    if (rc)
        return rc;
    packed_learn(handle, &contents);
    if (!d->depth)
        d->predefined = contents.combiner == COMBINER_NAMED || contents.combiner == COMBINER_F90;
    d->depth++;
    rc = make_new(d, &contents, &type);
    d->depth--;
    mpi_contents_drop(&contents);
    if (rc)
        return rc;
    rc = remember(d, handle, ours, type);
    if (rc)
        type_release(type);
    else
        *out = type;
    return rc;
}

static int decode(struct decoding *d, mpi_handle handle, int ours, struct type **out)
{
    struct known *known = d->room ? slot_of(d, handle) : NULL;
    int rc = 0, new = !known || !known->type;
    if (new)
        rc = decode_new(d, handle, ours, out);
    else
        *out = type_share(known->type);
    if (ours && (rc || !new))
        d->mpi->release(handle);
    return rc;
}

/* ---- what a datatype keeps ---- */

static pthread_mutex_t keeping = PTHREAD_MUTEX_INITIALIZER;

static void drop(void *type)
{
    type_release(type);
}

/* NULL: nothing yet. */
static struct type *recall(const struct mpi_types *mpi, mpi_handle handle)
{
    pthread_mutex_lock(&keeping);
    struct type *type = mpi->kept(handle);
    if (type)
        type_share(type);
    pthread_mutex_unlock(&keeping);
    return type;
}

/* Another thread may have been first. */
static void keep(const struct mpi_types *mpi, mpi_handle handle, struct type *type)
{
    pthread_mutex_lock(&keeping);
    if (!mpi->kept(handle) && mpi->keep(handle, type_share(type), drop))
        type_release(type);
    pthread_mutex_unlock(&keeping);
}

static int decode_all(const struct mpi_types *mpi, mpi_handle handle, struct type **out,
                      struct brg_error *err)
{
    struct decoding d = {.mpi = mpi, .err = err};
    struct type *type;
    int rc = decode(&d, handle, 0, &type);
    forget(&d);
    if (rc)
        return rc;
    if (!d.predefined)
        keep(mpi, handle, type);
    *out = type;
    return 0;
}

int type_decode(const struct mpi_types *mpi, mpi_handle handle, struct type **out,
                struct brg_error *err)
{
    uint64_t bytes = packed_bytes(handle);
    if (bytes)
        return type_basic((int64_t)bytes, out, err);
    struct type *known = recall(mpi, handle);
    if (!known)
        return decode_all(mpi, handle, out, err);
    *out = known;
    return 0;
}

int type_run(const struct mpi_types *mpi, mpi_handle handle, uint64_t count, uint64_t *bytes,
             int64_t *at)
{
    uint64_t one = packed_bytes(handle);
    *at = 0;
    if (one)
        return !__builtin_mul_overflow(one, count, bytes);
    struct type *type = recall(mpi, handle);
    const struct layout *data = type ? type->data.layout : NULL;
    int together = data && data->kind == LAYOUT_DATA &&
                   (count == 1 || type_extent(type) == (int64_t)data->bytes) &&
                   !__builtin_mul_overflow(data->bytes, count, bytes);
    *at = together ? type->data.at : 0;
    type_release(type);
    return together;
}
