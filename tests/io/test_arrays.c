/* The table of arrays and its index: what is packed comes back, and no bytes of an index, however
 * damaged, lead a reader astray (run under the address sanitizer for what that means). */
#include "claim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/array_index.h"

#define IS(claim)                   \
    do {                            \
        CHECK(claim, "as claimed"); \
        if (failures)               \
            exit(1);                \
    } while (0)

enum {
    STRIPE = 1 << 20,
    BLOCK = 64 << 10,
    FILE_BYTES = 1 << 30
};

static int add(struct array_table *t, const char *name, brg_type type, uint64_t a, uint64_t b)
{
    uint64_t shape[] = {a, b};
    struct brg_error err;
    return array_table_add(t, name, strlen(name), type, 2, shape, NULL, &err);
}

static int set(struct array_table *t, int64_t i, const char *name, brg_type type, size_t count,
               const void *values)
{
    struct brg_error err;
    return array_table_set(t, i, name, strlen(name), type, count, values, &err);
}

static void fill(struct array_table *t)
{
    double time = 1.5;
    int32_t numbers[] = {3, -4, 5};
    array_table_init(t, ARRAY_ALIGNMENT, STRIPE, BLOCK);
    IS(set(t, -1, "time", BRG_FLOAT64, 1, &time) == 0);
    IS(set(t, -1, "empty", BRG_TEXT, 0, NULL) == 0);
    IS(add(t, "small", BRG_INT8, 3, 5) == 0);
    IS(set(t, 0, "numbers", BRG_INT32, 3, numbers) == 0);
    IS(add(t, "group/none", BRG_FLOAT32, 0, 7) == 0);
    IS(add(t, "large", BRG_COMPLEX128, 1000, 1000) == 0);
    IS(add(t, "last", BRG_BOOL, 1, 1) == 0);
    struct brg_error err;
    IS(array_table_add(t, "scalar", 6, BRG_INT64, 0, NULL, NULL, &err) == 0);
    IS(set(t, 4, "unit", BRG_TEXT, 1, "K") == 0);
}

static char *pack(const struct array_table *t, struct array_header *header)
{
    uint64_t bytes = array_index_bytes(t);
    char *index = malloc(bytes), buf[ARRAY_HEADER_BYTES];
    struct brg_error err;
    array_index_pack(t, index);
    array_header_pack(buf, 4096, index, bytes);
    IS(array_header_unpack(buf, sizeof buf, FILE_BYTES, header, &err) == 1);
    IS(header->offset == 4096 && header->bytes == bytes);
    return index;
}

static void arrays_lie_where_stripes_and_alignment_say(void)
{
    struct array_table t;
    fill(&t);
    IS(t.arrays[0].is.offset == 64);
    IS(t.arrays[1].is.offset == 128 && t.arrays[1].bytes == 0);
    IS(t.arrays[2].is.offset == STRIPE && t.arrays[2].bytes == 16000000);
    IS(t.arrays[3].is.offset % 64 == 0 && t.arrays[3].is.offset >= STRIPE + 16000000);
    IS(t.end == t.arrays[4].is.offset + 8);
    array_table_destroy(&t);
}

/* Those of four blocks of a checksum or more share none with the array before. */
static void arrays_of_blocks_begin_on_one(void)
{
    static const struct {
        uint64_t bytes, at;
    } next[] = {{100, 64},
                {4 * BLOCK, BLOCK},
                {4 * BLOCK - 1, 5 * BLOCK},
                {5 * BLOCK, 9 * BLOCK},
                {STRIPE - 1, 14 * BLOCK},
                {STRIPE, 2 * STRIPE}};
    struct array_table t;
    char name[] = "a";
    array_table_init(&t, ARRAY_ALIGNMENT, STRIPE, BLOCK);
    for (size_t i = 0; i < sizeof next / sizeof *next; i++, name[0]++) {
        IS(add(&t, name, BRG_UINT8, 1, next[i].bytes) == 0);
        IS(t.arrays[i].is.offset == next[i].at);
    }
    array_table_destroy(&t);
}

static void what_is_packed_comes_back(void)
{
    struct array_table t, back;
    struct array_header header;
    struct brg_error err;
    fill(&t);
    char *index = pack(&t, &header);
    array_table_init(&back, 0, STRIPE, BLOCK);
    IS(array_index_unpack(&back, index, &header, &err) == 0);
    IS(back.n == t.n && back.end == t.end);
    for (size_t i = 0; i < t.n; i++) {
        IS(array_table_find(&back, t.arrays[i].is.name) == (int64_t)i);
        IS(back.arrays[i].told == t.arrays[i].told);
        IS(back.arrays[i].is.offset == t.arrays[i].is.offset);
    }
    struct io_attribute *a = array_table_attribute(&back, 0, "numbers");
    IS(a && a->type == BRG_INT32 && a->count == 3 && ((int32_t *)a->values)[1] == -4);
    a = array_table_attribute(&back, -1, "time");
    IS(a && *(double *)a->values == 1.5);
    a = array_table_attribute(&back, -1, "empty");
    IS(a && a->count == 0 && *(char *)a->values == 0);
    a = array_table_attribute(&back, 4, "unit");
    IS(a && !strcmp(a->values, "K"));
    IS(!array_table_attribute(&back, -1, "unit") && array_table_find(&back, "unit") < 0);
    free(index);
    array_table_destroy(&t);
    array_table_destroy(&back);
}

static void ten_thousand_names_are_found_and_replaced_attributes_stay_one(void)
{
    struct array_table t;
    char name[32];
    array_table_init(&t, 64, STRIPE, BLOCK);
    for (int i = 0; i < 10000; i++) {
        snprintf(name, sizeof name, "a%d", i);
        IS(add(&t, name, BRG_UINT8, 1, 1) == 0);
        IS(set(&t, i, name, BRG_UINT8, 1, "x") == 0 && set(&t, i, name, BRG_TEXT, 1, "y") == 0);
    }
    for (int i = 0; i < 10000; i++) {
        snprintf(name, sizeof name, "a%d", i);
        IS(array_table_find(&t, name) == i && t.arrays[i].attributes.n == 1);
        IS(array_table_attribute(&t, i, name)->type == BRG_TEXT);
    }
    IS(add(&t, "a77", BRG_UINT8, 1, 1) == -EEXIST);
    array_table_destroy(&t);
}

static void what_cannot_be_a_name_type_or_shape_is_refused(void)
{
    static const char *bad[] = {"",   "/a",   "a/",       "a//b",         ".",        "a/../b",
                                "..", "\xff", "\xc0\x80", "\xed\xa0\x80", "a\xe2\x82"};
    struct array_table t;
    struct brg_error err;
    uint64_t shape[17] = {1};
    char longest[ARRAY_NAME_BYTES + 2];
    array_table_init(&t, 64, STRIPE, BLOCK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        IS(add(&t, bad[i], BRG_INT8, 1, 1) == -EINVAL);
    memset(longest, 'n', sizeof longest);
    IS(array_table_add(&t, longest, ARRAY_NAME_BYTES + 1, BRG_INT8, 1, shape, NULL, &err) ==
       -EINVAL);
    IS(array_table_add(&t, longest, ARRAY_NAME_BYTES, BRG_INT8, 1, shape, NULL, &err) == 0);
    IS(array_table_add(&t, "a\0b", 3, BRG_INT8, 1, shape, NULL, &err) == -EINVAL);
    IS(array_table_add(&t, "a", 1, BRG_INT8, 17, shape, NULL, &err) == -EINVAL);
    IS(array_table_add(&t, "a", 1, BRG_INT8, -1, shape, NULL, &err) == -EINVAL);
    IS(add(&t, "a", BRG_TEXT, 1, 1) == -EINVAL && add(&t, "a", 0, 1, 1) == -EINVAL);
    IS(add(&t, "a", 99, 1, 1) == -EINVAL);
    IS(add(&t, "a", BRG_INT16, UINT64_MAX / 2, 2) == -EOVERFLOW);
    IS(add(&t, "a", BRG_INT8, (uint64_t)INT64_MAX - 64, 1) == -EOVERFLOW);
    IS(add(&t, "\xce\xb8/\xe2\x82\xac.\xf0\x9f\x9a\xb2", BRG_INT8, 1, 1) == 0 && t.n == 2);
    char *large = calloc(1, ARRAY_ATTRIBUTE_BYTES + 1);
    IS(set(&t, -1, "a", BRG_INT8, ARRAY_ATTRIBUTE_BYTES + 1, large) == -E2BIG);
    IS(set(&t, -1, "a", BRG_INT8, ARRAY_ATTRIBUTE_BYTES, large) == 0);
    free(large);
    array_table_destroy(&t);
}

static void any_flipped_bit_of_header_or_index_is_noticed(void)
{
    struct array_table t, back;
    struct array_header header, damaged;
    struct brg_error err;
    fill(&t);
    char *index = pack(&t, &header), buf[ARRAY_HEADER_BYTES];
    for (uint64_t bit = 0; bit < 8 * header.bytes; bit++) {
        index[bit / 8] ^= (char)(1 << bit % 8);
        array_table_init(&back, 0, STRIPE, BLOCK);
        IS(array_index_unpack(&back, index, &header, &err) == -EBADMSG);
        array_table_destroy(&back);
        index[bit / 8] ^= (char)(1 << bit % 8);
    }
    array_header_pack(buf, 4096, index, header.bytes);
    for (uint64_t bit = 0; bit < 8 * sizeof buf; bit++) {
        buf[bit / 8] ^= (char)(1 << bit % 8);
        int rc = array_header_unpack(buf, sizeof buf, FILE_BYTES, &damaged, &err);
        IS(rc == (bit < 64 ? 0 : -EBADMSG)); /* without its magic it is any file */
        buf[bit / 8] ^= (char)(1 << bit % 8);
    }
    IS(array_header_unpack(buf, sizeof buf, 4096 + header.bytes - 1, &damaged, &err) == -EBADMSG);
    free(index);
    array_table_destroy(&t);
}

/* Damage whose checksum was made right again: the parser's own checks are all there is. */
static void no_index_leads_outside_its_bytes(void)
{
    struct array_table t, back;
    struct array_header header;
    struct brg_error err;
    unsigned long read = 0;
    fill(&t);
    char *good = pack(&t, &header);
    srandom(5);
    for (int round = 0; round < 60000; round++) {
        struct array_header cut = header;
        cut.bytes -= round % 3 ? 0 : (uint64_t)random() % header.bytes;
        char *index =
            malloc(cut.bytes ? cut.bytes : 1); /* exactly: the sanitizer sees a byte beyond */
        memcpy(index, good, cut.bytes);
        for (int n = (int)(random() % 4); n >= 0 && cut.bytes; n--)
            index[(uint64_t)random() % cut.bytes] =
                (char)(random() % 4 ? random() : -(random() % 2));
        cut.checksum = array_checksum(index, cut.bytes);
        array_table_init(&back, 0, STRIPE, BLOCK);
        int rc = array_index_unpack(&back, index, &cut, &err);
        IS(rc == 0 || rc == -EBADMSG);
        read += rc == 0;
        array_table_destroy(&back);
        free(index);
    }
    IS(read > 1000); /* values may change without any harm to the form */
    free(good);
    array_table_destroy(&t);
}

int main(void)
{
    arrays_lie_where_stripes_and_alignment_say();
    arrays_of_blocks_begin_on_one();
    what_is_packed_comes_back();
    ten_thousand_names_are_found_and_replaced_attributes_stay_one();
    what_cannot_be_a_name_type_or_shape_is_refused();
    any_flipped_bit_of_header_or_index_is_noticed();
    no_index_leads_outside_its_bytes();
    printf("ok\n");
    return 0;
}
