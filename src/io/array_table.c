/* See array_table.h. */
#include "io/array_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define BLOCKS 4u /* an array of so many begins at one */

/* One name: of list `owner` (0 arrays, 1 attributes of the file, 2 + i those of array i), its
 * place there plus 1; 0 is an empty slot. */
struct array_slot {
    uint32_t owner, place;
};

enum {
    OWNER_ARRAYS,
    OWNER_FILE
};

static const struct {
    const char *name;
    size_t bytes;
} types[] = {
    [BRG_INT8] = {"int8", 1},           [BRG_UINT8] = {"uint8", 1},
    [BRG_INT16] = {"int16", 2},         [BRG_UINT16] = {"uint16", 2},
    [BRG_INT32] = {"int32", 4},         [BRG_UINT32] = {"uint32", 4},
    [BRG_INT64] = {"int64", 8},         [BRG_UINT64] = {"uint64", 8},
    [BRG_FLOAT32] = {"float32", 4},     [BRG_FLOAT64] = {"float64", 8},
    [BRG_COMPLEX64] = {"complex64", 8}, [BRG_COMPLEX128] = {"complex128", 16},
    [BRG_BOOL] = {"bool", 1},           [BRG_TEXT] = {"text", 1},
};

#define N_TYPES (sizeof types / sizeof *types)

size_t brg_type_bytes(brg_type type)
{
    return (size_t)type < N_TYPES ? types[type].bytes : 0;
}

void array_describe(char *text, size_t room, brg_type type, int ndims, const uint64_t *shape)
{
    size_t used = (size_t)snprintf(text, room, "%s [", types[type].name);
    for (int d = 0; d < ndims && used < room; d++)
        used += (size_t)snprintf(text + used, room - used, "%s%llu", d ? ", " : "",
                                 (unsigned long long)shape[d]);
    if (used < room)
        snprintf(text + used, room - used, "]");
}

/* ---- names ---- */

/* Bytes of the UTF-8 character at text, of which `left` are there; 0 if it is none. */
static size_t character(const unsigned char *text, size_t left)
{
    size_t n = text[0] < 0x80   ? 1
               : text[0] < 0xc2 ? 0
               : text[0] < 0xe0 ? 2
               : text[0] < 0xf0 ? 3
                                : 4;
    if (n > left || text[0] > 0xf4 || (text[0] == 0xe0 && text[1] < 0xa0) ||
        (text[0] == 0xed && text[1] > 0x9f) || (text[0] == 0xf0 && text[1] < 0x90) ||
        (text[0] == 0xf4 && text[1] > 0x8f))
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

int array_is_utf8(const char *text, size_t bytes)
{
    for (size_t n; bytes; text += n, bytes -= n)
        if (!(n = character((const unsigned char *)text, bytes)))
            return 0;
    return 1;
}

/* Whether each component of "group/array" could name a folder too. */
static int good_path(const char *name)
{
    for (;; name++) {
        size_t n = strcspn(name, "/");
        if (n == 0 || (n == 1 && name[0] == '.') || (n == 2 && !memcmp(name, "..", 2)))
            return 0;
        name += n;
        if (!*name)
            return 1;
    }
}

/* A checked copy. NULL with *err. */
static char *copy_name(const char *name, size_t bytes, int path, struct brg_error *err)
{
    char *copy = bytes && bytes <= ARRAY_NAME_BYTES ? strndup(name, bytes) : NULL;
    if (copy && strlen(copy) == bytes && array_is_utf8(copy, bytes) && (!path || good_path(copy)))
        return copy;
    if (!copy && bytes && bytes <= ARRAY_NAME_BYTES)
        brg_error_set(err, -ENOMEM, "no memory for a name");
    else
        brg_error_set(err, -EINVAL, "'%.*s' (%zu bytes) cannot be a name: 1 to %d bytes of UTF-8%s",
                      bytes < 100 ? (int)bytes : 100, name, bytes, ARRAY_NAME_BYTES,
                      path ? ", between slashes neither nothing nor . nor .." : "");
    free(copy);
    return NULL;
}

static uint64_t mix(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ p[i]) * 0x100000001b3u; /* FNV-1a */
    return hash;
}

static uint64_t hash_name(uint32_t owner, const char *name)
{
    return mix(mix(0xcbf29ce484222325u, &owner, sizeof owner), name, strlen(name));
}

static const struct io_attributes *list_of(const struct array_table *t, uint32_t owner)
{
    return owner == OWNER_FILE ? &t->attributes : &t->arrays[owner - 2].attributes;
}

static const char *name_at(const struct array_table *t, struct array_slot slot)
{
    if (slot.owner == OWNER_ARRAYS)
        return t->arrays[slot.place - 1].is.name;
    return list_of(t, slot.owner)->list[slot.place - 1].name;
}

/* Where the name is, or the empty slot where it would be. */
static struct array_slot *probe(const struct array_table *t, uint32_t owner, const char *name)
{
    size_t i = hash_name(owner, name) & (t->n_slots - 1);
    while (t->slots[i].place &&
           (t->slots[i].owner != owner || strcmp(name_at(t, t->slots[i]), name)))
        i = (i + 1) & (t->n_slots - 1);
    return &t->slots[i];
}

static int room_for_name(struct array_table *t)
{
    if (2 * (t->n_names + 1) <= t->n_slots)
        return 0;
    struct array_table wider = *t;
    wider.n_slots = t->n_slots ? 2 * t->n_slots : 64;
    wider.slots = calloc(wider.n_slots, sizeof *wider.slots);
    if (!wider.slots)
        return -ENOMEM;
    for (size_t i = 0; i < t->n_slots; i++)
        if (t->slots[i].place)
            *probe(&wider, t->slots[i].owner, name_at(t, t->slots[i])) = t->slots[i];
    free(t->slots);
    *t = wider;
    return 0;
}

/* Room for one more in a list that doubles. */
static int room_for(void **list, size_t n, size_t *room, size_t bytes)
{
    if (n < *room)
        return 0;
    size_t wanted = *room ? 2 * *room : 8;
    void *moved = reallocarray(*list, wanted, bytes);
    if (!moved)
        return -ENOMEM;
    *list = moved;
    *room = wanted;
    return 0;
}

/* ---- arrays ---- */

void array_table_init(struct array_table *t, uint64_t from, uint64_t stripe_bytes,
                      uint64_t block_bytes)
{
    *t = (struct array_table){
        .end = from, .most = UINT64_MAX, .stripe_bytes = stripe_bytes, .block_bytes = block_bytes};
}

static void free_attributes(struct io_attributes *attributes)
{
    for (size_t i = 0; i < attributes->n; i++) {
        free(attributes->list[i].name);
        free(attributes->list[i].values);
    }
    free(attributes->list);
}

void array_table_destroy(struct array_table *t)
{
    for (size_t i = 0; i < t->n; i++) {
        free((char *)(uintptr_t)t->arrays[i].is.name);
        free_attributes(&t->arrays[i].attributes);
    }
    free_attributes(&t->attributes);
    free(t->arrays);
    free(t->slots);
    array_table_init(t, 0, 0, 0);
}

int64_t array_table_find(const struct array_table *t, const char *name)
{
    return t->n_slots ? (int64_t)probe(t, OWNER_ARRAYS, name)->place - 1 : -1;
}

int array_table_same(const struct array_table *t, size_t i, brg_type type, int ndims,
                     const uint64_t *shape, struct brg_error *err)
{
    const brg_array *is = &t->arrays[i].is;
    char was[512], given[512];
    if (is->type == type && is->ndims == ndims &&
        (!ndims || !memcmp(is->shape, shape, (size_t)ndims * sizeof *shape)))
        return 0;
    array_describe(was, sizeof was, is->type, is->ndims, is->shape);
    if (brg_type_bytes(type) && ndims >= 0 && ndims <= BRG_MAX_DIMS)
        array_describe(given, sizeof given, type, ndims, shape);
    else
        snprintf(given, sizeof given, "type %d of %d dimensions", (int)type, ndims);
    return brg_error_set(err, -EINVAL, "array %.200s is %s, not %s", is->name, was, given);
}

static int measure(const char *name, brg_type type, int ndims, const uint64_t *shape,
                   uint64_t *bytes, struct brg_error *err)
{
    if (!brg_type_bytes(type) || type == BRG_TEXT)
        return brg_error_set(err, -EINVAL, "array %.200s: %d is no type of array elements", name,
                             (int)type);
    if (ndims < 0 || ndims > BRG_MAX_DIMS)
        return brg_error_set(err, -EINVAL, "array %.200s: 0 to %d dimensions, not %d", name,
                             BRG_MAX_DIMS, ndims);
    *bytes = brg_type_bytes(type);
    int none = 0, past = 0;
    for (int d = 0; d < ndims; d++) {
        none |= shape[d] == 0;
        past |= __builtin_mul_overflow(*bytes, shape[d] ? shape[d] : 1, bytes);
    }
    if (past || *bytes > INT64_MAX)
        return brg_error_set(err, -EOVERFLOW, "array %.200s has more than 2^63 bytes", name);
    if (none)
        *bytes = 0;
    return 0;
}

static uint64_t tell(const struct array_table *t, const struct io_array *a)
{
    uint64_t told = t->n ? t->arrays[t->n - 1].told : 0xcbf29ce484222325u;
    told = mix(told, a->is.name, strlen(a->is.name) + 1);
    told = mix(told, &a->is.type, sizeof a->is.type);
    told = mix(told, &a->is.ndims, sizeof a->is.ndims);
    return mix(told, a->is.shape, (size_t)a->is.ndims * sizeof *a->is.shape);
}

/* What an array begins at a multiple of. Blocks are not worth more than a quarter of the room. */
static uint64_t unit_of(const struct array_table *t, uint64_t bytes)
{
    uint64_t unit = bytes >= t->stripe_bytes           ? t->stripe_bytes
                    : bytes >= BLOCKS * t->block_bytes ? t->block_bytes
                                                       : ARRAY_ALIGNMENT;
    return unit < ARRAY_ALIGNMENT ? ARRAY_ALIGNMENT : unit;
}

static int place(struct array_table *t, struct io_array *a, const uint64_t *at,
                 struct brg_error *err)
{
    uint64_t unit = unit_of(t, a->bytes), end;
    a->is.offset = at ? *at : (t->end + unit - 1) / unit * unit;
    if (__builtin_add_overflow(a->is.offset, a->bytes, &end) || end > INT64_MAX)
        return brg_error_set(err, -EOVERFLOW, "array %.200s ends past 2^63", a->is.name);
    if (!at && end > t->most)
        return brg_error_set(err, -EFBIG,
                             "array %.200s would make the file too long for checksums of each %llu "
                             "bytes: a longer stripe (hint stripe), layout=parts or checksums=no "
                             "take it",
                             a->is.name, (unsigned long long)t->block_bytes);
    if (end > t->end)
        t->end = end;
    return 0;
}

int array_table_add(struct array_table *t, const char *name, size_t name_bytes, brg_type type,
                    int ndims, const uint64_t *shape, const uint64_t *at, struct brg_error *err)
{
    struct io_array a = {.is = {.type = type, .ndims = ndims}};
    char *copy = copy_name(name, name_bytes, 1, err);
    if (!copy)
        return err ? err->code : -EINVAL;
    a.is.name = copy;
    int rc = measure(copy, type, ndims, shape, &a.bytes, err);
    if (!rc && (array_table_find(t, copy) >= 0 || t->n >= UINT32_MAX - 2))
        rc = brg_error_set(err, -EEXIST, "there are two arrays %.200s", copy);
    if (!rc && (room_for((void **)&t->arrays, t->n, &t->room, sizeof a) || room_for_name(t)))
        rc = brg_error_set(err, -ENOMEM, "no memory for array %.200s", copy);
    if (!rc)
        rc = place(t, &a, at, err);
    if (rc) {
        free(copy);
        return rc;
    }
    if (ndims)
        memcpy(a.is.shape, shape, (size_t)ndims * sizeof *shape);
    a.told = tell(t, &a);
    *probe(t, OWNER_ARRAYS, copy) = (struct array_slot){OWNER_ARRAYS, (uint32_t)t->n + 1};
    t->n_names++;
    t->arrays[t->n++] = a;
    return 0;
}

/* ---- attributes ---- */

static uint32_t owner_of(int64_t i)
{
    return i < 0 ? OWNER_FILE : (uint32_t)i + 2;
}

struct io_attributes *array_table_attributes(struct array_table *t, int64_t i)
{
    return i < 0 ? &t->attributes : &t->arrays[i].attributes;
}

struct io_attribute *array_table_attribute(const struct array_table *t, int64_t i, const char *name)
{
    if (!t->n_slots)
        return NULL;
    const struct array_slot *slot = probe(t, owner_of(i), name);
    return slot->place ? &list_of(t, slot->owner)->list[slot->place - 1] : NULL;
}

int array_table_set(struct array_table *t, int64_t i, const char *name, size_t name_bytes,
                    brg_type type, size_t count, const void *values, struct brg_error *err)
{
    struct io_attributes *list = array_table_attributes(t, i);
    size_t bytes = 0, unit = brg_type_bytes(type);
    char *copy = copy_name(name, name_bytes, 0, err);
    if (!copy)
        return err ? err->code : -EINVAL;
    int rc = 0;
    if (!unit)
        rc = brg_error_set(err, -EINVAL, "attribute %.200s: there is no type %d", copy, (int)type);
    else if (__builtin_mul_overflow(count, unit, &bytes) || bytes > ARRAY_ATTRIBUTE_BYTES)
        rc = brg_error_set(err, -E2BIG, "attribute %.200s has more than %u bytes: make it an array",
                           copy, ARRAY_ATTRIBUTE_BYTES);
    char *kept = rc ? NULL : calloc(1, bytes + 1);
    if (!rc && (!kept || room_for((void **)&list->list, list->n, &list->room, sizeof *list->list) ||
                room_for_name(t)))
        rc = brg_error_set(err, -ENOMEM, "no memory for attribute %.200s", copy);
    if (rc) {
        free(copy);
        free(kept);
        return rc;
    }
    if (bytes)
        memcpy(kept, values, bytes);
    struct array_slot *slot = probe(t, owner_of(i), copy);
    if (slot->place) {
        struct io_attribute *old = &list->list[slot->place - 1];
        free(old->name);
        free(old->values);
        *old = (struct io_attribute){copy, type, count, kept};
        return 0;
    }
    *slot = (struct array_slot){owner_of(i), (uint32_t)list->n + 1};
    t->n_names++;
    list->list[list->n++] = (struct io_attribute){copy, type, count, kept};
    return 0;
}
