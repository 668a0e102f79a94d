/* Random datatypes: a recipe, the type that src/type makes of it, and the same written out in full,
 * element by element, by the standard's definitions alone. */
#ifndef BRG_TESTS_TYPE_RANDOM_TYPE_H
#define BRG_TESTS_TYPE_RANDOM_TYPE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "type/type.h"

#define MOST 6             /* blocks of a list, dimensions */
#define MOST_ELEMENTS 3000 /* of what is written out */

enum maker {
    BASIC,
    CONTIGUOUS,
    VECTOR,
    HVECTOR,
    INDEXED,
    HINDEXED,
    INDEXED_BLOCK,
    HINDEXED_BLOCK,
    STRUCT,
    RESIZED,
    SUBARRAY,
    DARRAY,
    MAKERS
};

struct recipe {
    enum maker maker;
    int64_t count, length, stride; /* of RESIZED: length is the lower bound, stride the extent */
    int64_t lengths[MOST], places[MOST];
    int ndims, size, rank, psizes[MOST];
    enum type_order order;
    enum type_distribution how[MOST];
    int64_t sizes[MOST], subsizes[MOST], starts[MOST];
    struct recipe *olds[MOST]; /* of STRUCT `count` of them, else the first */
    struct type *type;
};

static uint64_t random_state = 1;

static int64_t below(int64_t n)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((random_state >> 33) % (uint64_t)n);
}

/* ---- written out ---- */

struct element {
    int64_t at;
    int64_t bytes;
};

struct map {
    int n;
    struct element elements[MOST_ELEMENTS];
    int64_t lb, ub; /* set by hand, if they are */
    int set_lb, set_ub;
    int too_many;
};

static int64_t map_true_lb(const struct map *m)
{
    int64_t least = m->n ? m->elements[0].at : 0;
    for (int i = 1; i < m->n; i++)
        if (m->elements[i].at < least)
            least = m->elements[i].at;
    return least;
}

static int64_t map_true_ub(const struct map *m)
{
    int64_t most = m->n ? m->elements[0].at + m->elements[0].bytes : 0;
    for (int i = 1; i < m->n; i++)
        if (m->elements[i].at + m->elements[i].bytes > most)
            most = m->elements[i].at + m->elements[i].bytes;
    return most;
}

static int64_t map_lb(const struct map *m)
{
    return m->set_lb ? m->lb : map_true_lb(m);
}

static int64_t map_ub(const struct map *m)
{
    return m->set_ub ? m->ub : map_true_ub(m);
}

static int64_t map_extent(const struct map *m)
{
    return map_ub(m) - map_lb(m);
}

static int64_t map_size(const struct map *m)
{
    int64_t bytes = 0;
    for (int i = 0; i < m->n; i++)
        bytes += m->elements[i].bytes;
    return bytes;
}

/* A copy of `old` at `at`, behind what there is. */
static void map_add(struct map *m, const struct map *old, int64_t at)
{
    if (old->set_lb && (!m->set_lb || old->lb + at < m->lb))
        m->lb = old->lb + at, m->set_lb = 1;
    if (old->set_ub && (!m->set_ub || old->ub + at > m->ub))
        m->ub = old->ub + at, m->set_ub = 1;
    if (m->n + old->n > MOST_ELEMENTS || old->too_many) {
        m->too_many = 1;
        return;
    }
    for (int i = 0; i < old->n; i++) {
        m->elements[m->n] = old->elements[i];
        m->elements[m->n++].at += at;
    }
}

static void map_block(struct map *m, const struct map *old, int64_t length, int64_t at)
{
    for (int64_t i = 0; i < length; i++)
        map_add(m, old, at + i * map_extent(old));
}

/* Whether this process's part of an array has element `i` of dimension d. */
static int has_element(const struct recipe *r, int d, int64_t i)
{
    if (r->maker == SUBARRAY)
        return i >= r->starts[d] && i < r->starts[d] + r->subsizes[d];
    int inside = 1;
    for (int k = d + 1; k < r->ndims; k++)
        inside *= r->psizes[k];
    int mine = r->rank / inside % r->psizes[d];
    int64_t block = r->subsizes[d];
    if (r->how[d] == TYPE_NONE)
        return 1;
    if (block == TYPE_DEFAULT_ARGUMENT)
        block = r->how[d] == TYPE_CYCLIC ? 1 : (r->sizes[d] + r->psizes[d] - 1) / r->psizes[d];
    return i / block % r->psizes[d] == mine;
}

/* Every element of the array in its order; those that are held are added. */
static void map_array(struct map *m, const struct map *old, const struct recipe *r)
{
    int64_t elements = 1;
    for (int d = 0; d < r->ndims; d++)
        elements *= r->sizes[d];
    for (int64_t e = 0; e < elements; e++) {
        int64_t rest = e;
        int held = 1;
        for (int k = 0; k < r->ndims; k++) {
            int d = r->order == TYPE_ORDER_C ? r->ndims - 1 - k : k;
            held &= has_element(r, d, rest % r->sizes[d]);
            rest /= r->sizes[d];
        }
        if (held)
            map_add(m, old, e * map_extent(old));
    }
    m->lb = 0;
    m->ub = elements * map_extent(old);
    m->set_lb = m->set_ub = 1;
}

/* The caller frees it. */
static struct map *recipe_map(const struct recipe *r)
{
    struct map *m = calloc(1, sizeof *m), *old = NULL;
    if (r->maker == BASIC) {
        m->elements[m->n++] = (struct element){.bytes = r->length};
        return m;
    }
    if (r->maker != STRUCT)
        old = recipe_map(r->olds[0]);
    int64_t extent = old ? map_extent(old) : 0;
    switch (r->maker) {
    case CONTIGUOUS: map_block(m, old, r->count, 0); break;
    case VECTOR:
    case HVECTOR:
        for (int64_t i = 0; i < r->count; i++)
            map_block(m, old, r->length, i * r->stride * (r->maker == VECTOR ? extent : 1));
        break;
    case INDEXED:
    case HINDEXED:
    case INDEXED_BLOCK:
    case HINDEXED_BLOCK:
        for (int64_t i = 0; i < r->count; i++)
            map_block(
                m, old, r->maker == INDEXED || r->maker == HINDEXED ? r->lengths[i] : r->length,
                r->places[i] * (r->maker == INDEXED || r->maker == INDEXED_BLOCK ? extent : 1));
        break;
    case STRUCT:
        for (int64_t i = 0; i < r->count; i++) {
            old = recipe_map(r->olds[i]);
            map_block(m, old, r->lengths[i], r->places[i]);
            if (i + 1 < r->count)
                free(old), old = NULL;
        }
        break;
    case RESIZED:
        map_add(m, old, 0);
        m->lb = r->length;
        m->ub = r->length + r->stride;
        m->set_lb = m->set_ub = 1;
        break;
    default: map_array(m, old, r); break;
    }
    free(old);
    return m;
}

/* ---- as src/type makes it ---- */

static int recipe_type(struct recipe *r, struct brg_error *err)
{
    struct type *olds[MOST], *old = r->olds[0] ? r->olds[0]->type : NULL, **out = &r->type;
    for (int i = 0; i < MOST; i++)
        olds[i] = r->olds[i] ? r->olds[i]->type : NULL;
    switch (r->maker) {
    case BASIC: return type_basic(r->length, out, err);
    case CONTIGUOUS: return type_contiguous(r->count, old, out, err);
    case VECTOR: return type_vector(r->count, r->length, r->stride, old, out, err);
    case HVECTOR: return type_hvector(r->count, r->length, r->stride, old, out, err);
    case INDEXED: return type_indexed(r->count, r->lengths, r->places, old, out, err);
    case HINDEXED: return type_hindexed(r->count, r->lengths, r->places, old, out, err);
    case INDEXED_BLOCK: return type_indexed_block(r->count, r->length, r->places, old, out, err);
    case HINDEXED_BLOCK: return type_hindexed_block(r->count, r->length, r->places, old, out, err);
    case STRUCT: return type_struct(r->count, r->lengths, r->places, olds, out, err);
    case RESIZED: return type_resized(old, r->length, r->stride, out, err);
    case SUBARRAY:
        return type_subarray(r->ndims, r->sizes, r->subsizes, r->starts, r->order, old, out, err);
    default:
        return type_darray(r->size, r->rank, r->ndims, r->sizes, r->how, r->subsizes, r->psizes,
                           r->order, old, out, err);
    }
}

/* ---- recipes ---- */

static void recipe_destroy(struct recipe *r)
{
    if (!r)
        return;
    for (int i = 0; i < MOST; i++)
        recipe_destroy(r->olds[i]);
    type_release(r->type);
    free(r);
}

static void random_array(struct recipe *r)
{
    r->ndims = 1 + (int)below(3);
    r->order = below(2) ? TYPE_ORDER_C : TYPE_ORDER_FORTRAN;
    r->size = 1;
    for (int d = 0; d < r->ndims; d++) {
        r->sizes[d] = 1 + below(5);
        if (r->maker == SUBARRAY) {
            r->subsizes[d] = 1 + below(r->sizes[d]);
            r->starts[d] = below(r->sizes[d] - r->subsizes[d] + 1);
            continue;
        }
        r->how[d] = (enum type_distribution)below(3);
        r->psizes[d] = r->how[d] == TYPE_NONE ? 1 : 1 + (int)below(3);
        r->size *= r->psizes[d];
        int64_t least = r->how[d] == TYPE_BLOCK ? (r->sizes[d] - 1) / r->psizes[d] + 1 : 1;
        r->subsizes[d] = below(2) ? TYPE_DEFAULT_ARGUMENT : least + below(3);
    }
    r->rank = r->maker == DARRAY ? (int)below(r->size) : 0;
}

/* Numbers for a list of copies of `old`; tidy ones rise and do not overlap. */
static void random_list(struct recipe *r, int tidy)
{
    int by_extent = r->maker == INDEXED || r->maker == INDEXED_BLOCK;
    int64_t at = 0;
    r->count = below(MOST + 1);
    r->length = below(4);
    for (int64_t i = 0; i < r->count; i++) {
        struct type *old = r->olds[r->maker == STRUCT ? i : 0]->type;
        int64_t unit = by_extent ? 1 : type_extent(old);
        int64_t length = r->lengths[i] = below(4);
        if (r->maker == INDEXED_BLOCK || r->maker == HINDEXED_BLOCK)
            length = r->length;
        r->places[i] = tidy ? at : by_extent ? below(20) - 8 : below(200) - 80;
        if (tidy)
            at += length * unit + (below(2) ? below(3) * (by_extent ? 1 : 3) : 0);
    }
}

static int never_empty; /* no type without bytes is made */

/* A type at most `depth` deep; a tidy one is as a view wants it. */
static struct recipe *recipe_random(int depth, int tidy)
{
    struct recipe *r = calloc(1, sizeof *r);
    struct brg_error err;
    r->maker = depth == 0 || below(6) == 0 ? BASIC : 1 + (enum maker)below(MAKERS - 1);
    for (int i = 0; r->maker != BASIC && i < (r->maker == STRUCT ? MOST : 1); i++)
        r->olds[i] = recipe_random(depth - 1, tidy);
    struct type *old = r->olds[0] ? r->olds[0]->type : NULL;
    r->count = below(5);
    r->length = below(4);
    switch (r->maker) {
    case BASIC: r->length = INT64_C(1) << below(4); break;
    case VECTOR: r->stride = tidy ? r->length + below(3) : below(9) - 4; break;
    case HVECTOR:
        r->stride = tidy ? r->length * type_extent(old) + below(9) : below(120) - 60;
        break;
    case RESIZED:
        r->length = tidy ? 0 : below(40) - 20;
        r->stride = tidy ? type_true_ub(old) + below(3) * 4 : below(60);
        break;
    case SUBARRAY:
    case DARRAY: random_array(r); break;
    default:
        if (r->maker >= INDEXED && r->maker <= STRUCT)
            random_list(r, tidy);
        break;
    }
    if (recipe_type(r, &err)) {
        printf("FAIL: maker %d is refused: %s\n", r->maker, err.text);
        exit(1);
    }
    if (never_empty && type_size(r->type) == 0) {
        recipe_destroy(r);
        return recipe_random(depth, tidy);
    }
    return r;
}

#endif
