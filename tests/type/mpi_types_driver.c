/* Random datatypes, made with MPI's calls and with ours: what MPI packs, measures and places in a
 * file is what ours comes to, and so is what MPI's own description is decoded to.
 * Usage: driver FILE FIRST ROUNDS */
#include <errno.h>
#include <mpi.h>

#include "claim.h"
#include "random_type.h"
#include "type/decode.h"
#include "type/file_view.h"
#include "type/walk.h"

static int round_now, is_mpich;
static const struct mpi_types *mpi_types;

/* ---- the same type in MPI ---- */

static MPI_Datatype basic(int64_t bytes)
{
    return bytes == 1 ? MPI_CHAR : bytes == 2 ? MPI_SHORT : bytes == 4 ? MPI_FLOAT : MPI_DOUBLE;
}

static void make_array(const struct recipe *r, MPI_Datatype old, MPI_Datatype *out)
{
    int sizes[MOST], subsizes[MOST], starts[MOST], how[MOST];
    int order = r->order == TYPE_ORDER_C ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    for (int d = 0; d < r->ndims; d++) {
        sizes[d] = (int)r->sizes[d];
        subsizes[d] = (int)r->subsizes[d];
        starts[d] = (int)r->starts[d];
        how[d] = r->how[d] == TYPE_BLOCK    ? MPI_DISTRIBUTE_BLOCK
                 : r->how[d] == TYPE_CYCLIC ? MPI_DISTRIBUTE_CYCLIC
                                            : MPI_DISTRIBUTE_NONE;
        if (r->maker == DARRAY && subsizes[d] == TYPE_DEFAULT_ARGUMENT)
            subsizes[d] = MPI_DISTRIBUTE_DFLT_DARG;
    }
    if (r->maker == SUBARRAY)
        MPI_Type_create_subarray(r->ndims, sizes, subsizes, starts, order, old, out);
    else
        MPI_Type_create_darray(r->size, r->rank, r->ndims, sizes, how, subsizes, r->psizes, order,
                               old, out);
}

#if MPI_VERSION >= 4
/* By the large-count calls; 0 where there is none of this maker here. */
static int make_large(const struct recipe *r, MPI_Datatype *olds, MPI_Datatype *out)
{
    MPI_Count lengths[MOST], places[MOST], sizes[MOST], subsizes[MOST], starts[MOST];
    for (int i = 0; i < MOST; i++) {
        lengths[i] = r->lengths[i], places[i] = r->places[i];
        sizes[i] = r->sizes[i], subsizes[i] = r->subsizes[i], starts[i] = r->starts[i];
    }
    switch (r->maker) {
    case CONTIGUOUS: MPI_Type_contiguous_c(r->count, olds[0], out); return 1;
    case VECTOR: MPI_Type_vector_c(r->count, r->length, r->stride, olds[0], out); return 1;
    case HVECTOR: MPI_Type_create_hvector_c(r->count, r->length, r->stride, olds[0], out); return 1;
    case INDEXED: MPI_Type_indexed_c(r->count, lengths, places, olds[0], out); return 1;
    case HINDEXED: MPI_Type_create_hindexed_c(r->count, lengths, places, olds[0], out); return 1;
    case INDEXED_BLOCK:
        MPI_Type_create_indexed_block_c(r->count, r->length, places, olds[0], out);
        return 1;
    case HINDEXED_BLOCK:
        MPI_Type_create_hindexed_block_c(r->count, r->length, places, olds[0], out);
        return 1;
    case STRUCT: MPI_Type_create_struct_c(r->count, lengths, places, olds, out); return 1;
    case RESIZED: MPI_Type_create_resized_c(olds[0], r->length, r->stride, out); return 1;
    case SUBARRAY:
        MPI_Type_create_subarray_c(r->ndims, sizes, subsizes, starts,
                                   r->order == TYPE_ORDER_C ? MPI_ORDER_C : MPI_ORDER_FORTRAN,
                                   olds[0], out);
        return 1;
    default: return 0;
    }
}
#else
static int make_large(const struct recipe *r, MPI_Datatype *olds, MPI_Datatype *out)
{
    (void)r, (void)olds, (void)out;
    return 0;
}
#endif

static void make_small(const struct recipe *r, MPI_Datatype *olds, MPI_Datatype *out)
{
    int count = (int)r->count, length = (int)r->length, lengths[MOST], steps[MOST];
    MPI_Aint places[MOST];
    for (int i = 0; i < MOST; i++) {
        lengths[i] = (int)r->lengths[i];
        steps[i] = (int)r->places[i];
        places[i] = r->places[i];
    }
    switch (r->maker) {
    case CONTIGUOUS: MPI_Type_contiguous(count, olds[0], out); break;
    case VECTOR: MPI_Type_vector(count, length, (int)r->stride, olds[0], out); break;
    case HVECTOR: MPI_Type_create_hvector(count, length, r->stride, olds[0], out); break;
    case INDEXED: MPI_Type_indexed(count, lengths, steps, olds[0], out); break;
    case HINDEXED: MPI_Type_create_hindexed(count, lengths, places, olds[0], out); break;
    case INDEXED_BLOCK: MPI_Type_create_indexed_block(count, length, steps, olds[0], out); break;
    case HINDEXED_BLOCK: MPI_Type_create_hindexed_block(count, length, places, olds[0], out); break;
    case STRUCT: MPI_Type_create_struct(count, lengths, places, olds, out); break;
    case RESIZED: MPI_Type_create_resized(olds[0], r->length, r->stride, out); break;
    default: make_array(r, olds[0], out); break;
    }
}

static int may_be_large; /* ROMIO of MPICH 4.0 takes no such filetypes */

/* The caller frees it; MPI_DATATYPE_NULL where MPI refuses (Open MPI 4.1: a darray of types without
 * bytes). */
static MPI_Datatype make_mpi(const struct recipe *r)
{
    MPI_Datatype olds[MOST], out = MPI_DATATYPE_NULL;
    int refused = 0;
    if (r->maker == BASIC) {
        MPI_Type_dup(basic(r->length), &out);
        return out;
    }
    for (int i = 0; i < MOST; i++)
        olds[i] = r->olds[i] ? make_mpi(r->olds[i]) : MPI_DATATYPE_NULL;
    for (int i = 0; i < MOST; i++)
        refused |= r->olds[i] && olds[i] == MPI_DATATYPE_NULL;
    if (!refused && (!may_be_large || below(2) == 0 || !make_large(r, olds, &out)))
        make_small(r, olds, &out);
    for (int i = 0; i < MOST; i++)
        if (olds[i] != MPI_DATATYPE_NULL)
            MPI_Type_free(&olds[i]);
    return out;
}

/* ---- comparing ---- */

static void check_measures(MPI_Datatype type, const struct type *t, const char *what)
{
    MPI_Count size, lb, extent;
    MPI_Type_size_x(type, &size);
    CHECK(size == (MPI_Count)type_size(t), "round %d: size of %s", round_now, what);
    MPI_Type_get_extent_x(type, &lb, &extent);
    CHECK(lb == t->lb && extent == type_extent(t), "round %d: %s: MPI %lld+%lld, ours %lld+%lld",
          round_now, what, (long long)lb, (long long)extent, (long long)t->lb,
          (long long)type_extent(t));
    MPI_Type_get_true_extent_x(type, &lb, &extent);
    if (size && t->data.layout->apart) /* see decode.c */
        CHECK(lb <= type_true_lb(t) && lb + extent >= type_true_ub(t),
              "round %d: true extent of %s", round_now, what);
}

/* Types that Open MPI 4.1 packs wrongly: where a byte of memory is two of the data, and where a run
 * ends at the beginning of the one before it. */
static int is_packed_wrongly(const struct type *t)
{
    char *seen = calloc((size_t)(type_true_ub(t) - type_true_lb(t)) + 1, 1);
    int64_t before = INT64_MAX;
    int wrong = 0;
    struct walk w;
    for (walk_start(&w, t->data, 0); w.run.bytes; walk_next(&w)) {
        wrong |= w.run.at + (int64_t)w.run.bytes == before;
        before = w.run.at;
        for (uint64_t i = 0; i < w.run.bytes; i++)
            wrong |= seen[w.run.at - type_true_lb(t) + (int64_t)i]++;
    }
    free(seen);
    return wrong;
}

/* What MPI packs of one copy. */
static void check_packing(MPI_Datatype type, const struct type *t)
{
    int64_t span = type_true_ub(t) - type_true_lb(t), size = (int64_t)type_size(t), at = 0;
    char *memory = malloc((size_t)span + 1), *ours = malloc((size_t)size + 1);
    char *theirs = malloc((size_t)size + 1024), *zero = memory - type_true_lb(t);
    int position = 0;
    struct walk w;
    for (int64_t i = 0; i < span; i++)
        memory[i] = (char)below(256);
    MPI_Pack(zero, 1, type, theirs, (int)size + 1024, &position, MPI_COMM_SELF);
    for (walk_start(&w, t->data, 0); w.run.bytes; walk_next(&w)) {
        memcpy(ours + at, zero + w.run.at, w.run.bytes);
        at += (int64_t)w.run.bytes;
    }
    CHECK(at == size && position == size, "round %d: packed %d of %lld", round_now, position,
          (long long)size);
    CHECK(memcmp(ours, theirs, (size_t)size) == 0, "round %d: other bytes", round_now);
    free(memory);
    free(ours);
    free(theirs);
}

static int one_type(void)
{
    struct recipe *r = recipe_random(1 + (int)below(4), (int)below(2));
    struct brg_error err = {.text = ""};
    struct type *decoded = NULL;
    int compared = type_size(r->type) < 100000 && r->type->data.at < 100000000;
    if (compared) {
        MPI_Datatype type = make_mpi(r);
        if (type == MPI_DATATYPE_NULL) {
            recipe_destroy(r);
            return 0;
        }
        MPI_Type_commit(&type);
        int rc = type_decode(mpi_types, (mpi_handle)type, &decoded, &err);
        CHECK(rc == 0, "round %d: %s", round_now, err.text);
        if (rc == 0) {
            check_measures(type, decoded, "what was decoded");
            if (!is_packed_wrongly(decoded))
                check_packing(type, decoded);
            type_release(decoded);
        }
        MPI_Type_free(&type);
    }
    recipe_destroy(r);
    return compared;
}

/* ROMIO of MPICH 4.0 loses bytes of types inside others, where those have holes, bounds of their
 * own or members without bytes: it refuses the view, or says that bytes lie where holes are. */
static int is_in_doubt(const struct recipe *r)
{
    int doubt = 0;
    for (int i = 0; i < MOST; i++)
        doubt |= r->olds[i] && r->olds[i]->maker != BASIC;
    return is_mpich && doubt;
}

/* Where MPI says that bytes of a view lie. */
static int check_view(MPI_File file, MPI_Datatype type, const struct type *decoded)
{
    struct file_view view;
    struct type *byte;
    int64_t shift = below(1000), size = (int64_t)type_size(decoded);
    type_basic(1, &byte, NULL);
    int rc = file_view_create(&view, shift, byte, decoded, NULL);
    type_release(byte);
    if (rc) /* MPI's padding may make a type overlap */
        return 0;
    rc = MPI_File_set_view(file, shift, MPI_BYTE, type, "native", MPI_INFO_NULL);
    for (int i = 0; rc == 0 && i < 5; i++) {
        MPI_Offset position = below(4 * size), offset = -1;
        int64_t ours = file_view_offset(&view, (uint64_t)position);
        MPI_File_get_byte_offset(file, position, &offset);
        CHECK(offset == ours, "round %d: byte %lld of the view: MPI %lld, ours %lld", round_now,
              (long long)position, (long long)offset, (long long)ours);
    }
    file_view_destroy(&view);
    return rc == 0;
}

static int one_view(MPI_File file)
{
    struct recipe *r = recipe_random(1 + (int)below(3), 1);
    struct type *decoded;
    int made = 0;
    if (type_size(r->type) && type_size(r->type) < 100000 && !is_in_doubt(r)) {
        MPI_Datatype type = make_mpi(r);
        if (type == MPI_DATATYPE_NULL) {
            recipe_destroy(r);
            return 0;
        }
        MPI_Type_commit(&type);
        if (type_decode(mpi_types, (mpi_handle)type, &decoded, NULL) == 0) {
            made = check_view(file, type, decoded);
            type_release(decoded);
        }
        MPI_Type_free(&type);
    }
    recipe_destroy(r);
    return made;
}

/* ---- by hand ---- */

static void check_decoded(MPI_Datatype type, int64_t size, int runs, const char *what)
{
    struct type *t = NULL;
    struct brg_error err = {.text = ""};
    int rc = type_decode(mpi_types, (mpi_handle)type, &t, &err);
    CHECK(rc == 0, "%s: %s", what, err.text);
    if (rc)
        return;
    check_measures(type, t, what);
    CHECK((int64_t)type_size(t) == size && t->data.layout->runs == (uint64_t)runs, "%s", what);
    check_packing(type, t);
    type_release(t);
}

static void named_types(void)
{
    struct type *t = NULL;
    struct brg_error err = {.text = ""};
    MPI_Datatype type;
    check_decoded(MPI_BYTE, 1, 1, "MPI_BYTE");
    check_decoded(MPI_LONG_DOUBLE, sizeof(long double), 1, "MPI_LONG_DOUBLE");
    check_decoded(MPI_C_DOUBLE_COMPLEX, 16, 1, "MPI_C_DOUBLE_COMPLEX");
    check_decoded(MPI_2INT, 8, 1, "MPI_2INT");
    check_decoded(MPI_DOUBLE_INT, 12, 1, "MPI_DOUBLE_INT");
    check_decoded(MPI_LONG_DOUBLE_INT, 20, 1, "MPI_LONG_DOUBLE_INT");
    check_decoded(MPI_SHORT_INT, 6, 2, "MPI_SHORT_INT has a gap");
    check_decoded(MPI_DOUBLE_PRECISION, 8, 1, "Fortran's double precision");
    check_decoded(MPI_INTEGER, 4, 1, "Fortran's integer");
    MPI_Type_create_f90_real(15, MPI_UNDEFINED, &type);
    check_decoded(type, 8, 1, "Fortran's real of 15 digits");
    MPI_Type_contiguous(3, type, &type);
    MPI_Type_commit(&type);
    check_decoded(type, 24, 1, "three of it");
    MPI_Type_free(&type);
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
    MPI_Type_get_value_index(MPI_FLOAT, MPI_INT64_T, &type);
    if (type != MPI_DATATYPE_NULL)
        check_decoded(type, 12, 2, "a float and its index, with a gap");
#endif
    CHECK(type_decode(mpi_types, (mpi_handle)MPI_DATATYPE_NULL, &t, &err) == -EINVAL, "null");
    CHECK(strstr(err.text, "MPI_DATATYPE_NULL") && !t, "%s", err.text);
}

/* Padding of structs is MPI's affair, and taken over: copies of one lie where MPI has them. */
static void padded_struct(void)
{
    int ones[2] = {1, 1};
    MPI_Aint places[2] = {0, 8};
    MPI_Datatype parts[2] = {MPI_DOUBLE, MPI_CHAR}, one, many;
    MPI_Type_create_struct(2, ones, places, parts, &one);
    MPI_Type_contiguous(5, one, &many);
    MPI_Type_commit(&many);
    check_decoded(many, 45, 5, "5 structs");
    MPI_Type_free(&one);
    MPI_Type_free(&many);
}

/* Each has the one before twice: 2^10 paths to the first. */
static void shared_types(void)
{
    MPI_Datatype type, next, two[2];
    struct type *t = NULL;
    struct brg_error err = {.text = ""};
    int ones[2] = {1, 1};
    MPI_Type_contiguous(1, MPI_BYTE, &type);
    for (int i = 0; i < 10; i++) {
        MPI_Count lb, extent;
        MPI_Type_get_extent_x(type, &lb, &extent);
        MPI_Aint places[2] = {0, extent + i % 2};
        two[0] = two[1] = type;
        MPI_Type_create_struct(2, ones, places, two, &next);
        MPI_Type_free(&type);
        type = next;
    }
    int rc = type_decode(mpi_types, (mpi_handle)type, &t, &err);
    CHECK(rc == 0, "%s", err.text);
    CHECK(rc || type_size(t) == 1 << 10, "size");
    type_release(t);
    MPI_Type_free(&type);
}

int main(int argc, char **argv)
{
    const struct mpi_interface *interface;
    struct brg_error err;
    MPI_File file;
    int first = argc > 3 ? atoi(argv[2]) : 0, rounds = argc > 3 ? atoi(argv[3]) : 100;
    int types = 0, views = 0, length;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Init(&argc, &argv);
    MPI_Get_library_version(version, &length);
    is_mpich = strstr(version, "MPICH") != NULL;
    never_empty = is_mpich; /* its MPI_Pack divides by zero where a member has no bytes */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (mpi_join(&interface, &err)) {
        printf("FAIL: %s\n", err.text);
        return 1;
    }
    mpi_types = interface->types;
    named_types();
    padded_struct();
    shared_types();
    if (MPI_File_open(MPI_COMM_SELF, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                      &file))
        printf("FAIL: %s cannot be opened\n", argv[1]);
    for (round_now = first; round_now < first + rounds && failures < 20; round_now++) {
        random_state = (uint64_t)round_now;
        may_be_large = 1;
        types += one_type();
        may_be_large = 0;
        views += one_view(file);
    }
    MPI_File_close(&file);
    CHECK(types > rounds / 2 && views > rounds / 8, "%d types, %d views", types, views);
    printf("%d types, %d views, %d failures\n", types, views, failures);
    MPI_Finalize();
    return failures != 0;
}
