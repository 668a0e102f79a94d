/* The named arrays of one file and their attributes, as one rank knows them. Pure: memory only.
 *
 * Every rank defines the same arrays in the same order, so each works out the same offsets without
 * asking. `told` of the last array stands for the whole order: ranks that agree on it agree on
 * every name, type and shape before it. */
#ifndef BRG_IO_ARRAY_TABLE_H
#define BRG_IO_ARRAY_TABLE_H

#include "brigade/io.h"

#define ARRAY_NAME_BYTES 1023            /* of a name, at most */
#define ARRAY_ATTRIBUTE_BYTES (1u << 20) /* of one attribute's values, at most */
#define ARRAY_ALIGNMENT 64u              /* of small arrays, and of the index */

struct io_attribute {
    char *name;
    brg_type type;
    size_t count;
    void *values; /* a NUL follows */
};

struct io_attributes {
    struct io_attribute *list;
    size_t n, room;
};

struct io_array {
    brg_array is;
    uint64_t bytes;
    uint64_t told; /* hash of this definition and of all before it */
    struct io_attributes attributes;
};

struct array_table {
    struct io_array *arrays;
    size_t n, room;
    struct io_attributes attributes; /* of the file */
    uint64_t end;                    /* no array has a byte from here on */
    uint64_t most;                   /* nor may one that is added behind the others from here on */
    uint64_t stripe_bytes;           /* arrays of a stripe or more begin on one */
    uint64_t block_bytes;            /* of a checksum: others of four or more on one of these */
    struct array_slot *slots;        /* names of all kinds, open addressing */
    size_t n_slots, n_names;
};

/* An empty table; arrays are laid out behind the first `from` bytes of the file, wherever they end
 * (most). */
void array_table_init(struct array_table *table, uint64_t from, uint64_t stripe_bytes,
                      uint64_t block_bytes);
void array_table_destroy(struct array_table *table);

/* The array's number, or -1. */
int64_t array_table_find(const struct array_table *table, const char *name);

/* Whether type and shape are those of array i; else -EINVAL, in words. */
int array_table_same(const struct array_table *table, size_t i, brg_type type, int ndims,
                     const uint64_t *shape, struct brg_error *err);

/* Adds an array behind all others, or (`at` not NULL) at an offset of its own: -EINVAL for a bad
 * name, type or shape, -EEXIST, -EOVERFLOW past 2^63, -EFBIG past `most`, -ENOMEM. */
int array_table_add(struct array_table *table, const char *name, size_t name_bytes, brg_type type,
                    int ndims, const uint64_t *shape, const uint64_t *at, struct brg_error *err);

/* Attributes of array i, or of the file (i = -1). NULL: there is none of that name. */
struct io_attributes *array_table_attributes(struct array_table *table, int64_t i);
struct io_attribute *array_table_attribute(const struct array_table *table, int64_t i,
                                           const char *name);
/* Adds or replaces: -EINVAL for a bad name or type, -E2BIG, -ENOMEM. */
int array_table_set(struct array_table *table, int64_t i, const char *name, size_t name_bytes,
                    brg_type type, size_t count, const void *values, struct brg_error *err);

/* NUL is a character as others are. */
int array_is_utf8(const char *text, size_t bytes);

/* "float64 [3, 4]" */
void array_describe(char *text, size_t room, brg_type type, int ndims, const uint64_t *shape);

#endif
