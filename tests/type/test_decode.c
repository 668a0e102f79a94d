/* Decoding, with an MPI that is a table: types are looked at once, and handles given back. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "claim.h"
#include "type/decode.h"

#define NULL_HANDLE 9999
#define HIGHEST 2000
#define INT_HANDLE 1999 /* predefined, four bytes */

/* Handle 0 is a byte; what the others are `kind` says. Of those out: `held`. */
static enum {
    TWICE,
    CHAIN,
    SHORT_PAIR,
    LESS,
    DISAGREES,
    UNKNOWN,
    INNER_NULL,
    PADDED
} kind;
static int told, held[HIGHEST + 1];

static mpi_handle hand_out(mpi_handle h)
{
    if (h <= HIGHEST)
        held[h]++;
    return h;
}

static void give_back(mpi_handle h)
{
    if (h <= HIGHEST)
        held[h]--;
}

static void *room(size_t n, size_t size)
{
    return calloc(n + 1, size);
}

/* A struct of the type before, twice, with a byte between that is nobody's. */
static void tell_twice(mpi_handle h, struct mpi_contents *c)
{
    int64_t old = 1;
    for (mpi_handle i = 1; i < h; i++)
        old = 2 * old + (int64_t)(i % 2);
    c->combiner = COMBINER_STRUCT;
    c->size = INT64_C(1) << h;
    c->extent = c->true_extent = 2 * old + (int64_t)(h % 2);
    c->n_integers = 3;
    c->n_addresses = c->n_types = 2;
    c->integers[0] = 2;
    c->integers[1] = c->integers[2] = 1;
    c->addresses[1] = old + (int64_t)(h % 2);
    c->types[0] = hand_out(h - 1);
    c->types[1] = hand_out(h - 1);
}

static int fake_tell(mpi_handle h, struct mpi_contents *out)
{
    struct mpi_contents c = {.size = 1, .extent = 1, .true_extent = 1};
    told++;
    if (h == NULL_HANDLE)
        return -EINVAL;
    if (h && kind == UNKNOWN)
        return -ENOTSUP;
    c.integers = room(3, sizeof *c.integers);
    c.addresses = room(2, sizeof *c.addresses);
    c.counts = room(0, sizeof *c.counts);
    c.types = room(2, sizeof *c.types);
    if (h == INT_HANDLE)
        c.size = c.extent = c.true_extent = 4;
    if (h == 0 || h == INT_HANDLE) {
        c.combiner = COMBINER_NAMED;
        if (kind == SHORT_PAIR)
            c.size = 6, c.extent = c.true_extent = 8;
    } else if (kind == TWICE) {
        tell_twice(h, &c);
    } else {
        c.combiner = kind == LESS ? COMBINER_INDEXED : COMBINER_DUP;
        c.size = kind == DISAGREES ? 2 : 1;
        c.n_types = 1;
        c.types[0] = kind == INNER_NULL ? NULL_HANDLE : hand_out(h - 1);
        c.integers[0] = 1 << 20; /* blocks of which nothing is told */
        c.n_integers = 1;
        if (kind == INNER_NULL) { /* a second member, which is not looked at */
            c.n_types = 2;
            c.types[1] = hand_out(h - 1);
        }
        if (kind == PADDED)
            c.lb = -2, c.extent = 8;
    }
    *out = c;
    return 0;
}

/* What one datatype keeps; the program frees it by fake_free. */
static struct {
    mpi_handle handle;
    void *value;
    void (*drop)(void *value);
} kept;

static void *fake_kept(mpi_handle h)
{
    return kept.value && kept.handle == h ? kept.value : NULL;
}

static int fake_keep(mpi_handle h, void *value, void (*drop)(void *value))
{
    CHECK(!kept.value && h != 0, "%d keeps a value, and another", (int)h);
    kept.handle = h;
    kept.value = value;
    kept.drop = drop;
    return 0;
}

static void fake_free(void)
{
    if (kept.value)
        kept.drop(kept.value);
    kept.value = NULL;
}

static const struct mpi_types fake = {
    .tell = fake_tell, .release = give_back, .kept = fake_kept, .keep = fake_keep};

static int decode(mpi_handle h, struct type **type, struct brg_error *err)
{
    told = 0;
    fake_free();
    int rc = type_decode(&fake, h, type, err);
    for (int i = 0; i <= HIGHEST; i++)
        CHECK(held[i] == 0, "kind %d: %d handles to %d are left", kind, held[i], i);
    return rc;
}

static void refused(mpi_handle h, int code, const char *words)
{
    struct type *type = NULL;
    struct brg_error err = {.text = ""};
    int rc = decode(h, &type, &err);
    CHECK(rc == code && !type, "kind %d: %d", kind, rc);
    CHECK(strstr(err.text, words), "kind %d: %s", kind, err.text);
}

/* What was decoded is known until the program frees the datatype. */
static void keeps_what_it_decodes(void)
{
    struct type *first = NULL, *again = NULL;
    uint64_t bytes = 0;
    int64_t at = 7;
    kind = TWICE;
    CHECK(decode(3, &first, NULL) == 0 && told == 4, "%d looks", told);
    CHECK(type_decode(&fake, 3, &again, NULL) == 0 && again == first && told == 4, "%d looks",
          told);
    type_release(again);
    CHECK(!type_run(&fake, 3, 1, &bytes, &at), "it has holes");
    CHECK(!type_run(&fake, 5, 1, &bytes, &at) && told == 4, "it was not decoded, and is not now");
    fake_free();
    CHECK(type_size(first) == 8, "what was given out stays");
    type_release(first);
    CHECK(type_decode(&fake, 3, &again, NULL) == 0 && told == 8, "%d looks", told);
    type_release(again);
    fake_free();
}

/* The copies of what has no holes lie together; of what is padded, one. */
static void runs_of_bytes(void)
{
    struct type *type = NULL;
    uint64_t bytes = 0;
    int64_t at = 7;
    kind = CHAIN;
    CHECK(decode(1, &type, NULL) == 0, "a chain");
    type_release(type);
    CHECK(type_run(&fake, 1, 9, &bytes, &at) && bytes == 9 && at == 0, "%d", (int)bytes);
    CHECK(!type_run(&fake, INT_HANDLE, 5, &bytes, &at), "it was not decoded");
    fake_free();
    CHECK(decode(INT_HANDLE, &type, NULL) == 0 && !kept.value, "a predefined one keeps nothing");
    type_release(type);
    CHECK(type_run(&fake, INT_HANDLE, 5, &bytes, &at) && bytes == 20 && at == 0, "%d", (int)bytes);
    CHECK(!type_run(&fake, INT_HANDLE, UINT64_MAX / 2, &bytes, &at), "too many");
    kind = PADDED;
    CHECK(decode(1, &type, NULL) == 0, "padded");
    type_release(type);
    CHECK(type_run(&fake, 1, 1, &bytes, &at) && bytes == 1, "one: %d", (int)bytes);
    CHECK(!type_run(&fake, 1, 2, &bytes, &at), "two are eight bytes apart");
    fake_free();
}

int main(void)
{
    struct type *type = NULL;
    struct brg_error err = {.text = ""};
    kind = TWICE;
    CHECK(decode(40, &type, &err) == 0, "%s", err.text);
    CHECK(told == 41, "2^40 paths, %d looks", told);
    CHECK(type && type_size(type) == UINT64_C(1) << 40, "its bytes");
    type_release(type);
    kind = SHORT_PAIR;
    CHECK(decode(0, &type, &err) == 0, "%s", err.text);
    CHECK(type && type->data.layout->runs == 2 && type->data.layout->entries[1].at == 4, "a gap");
    type_release(type);
    kind = CHAIN;
    CHECK(decode(DECODE_MAX_DEPTH - 1, &type, &err) == 0, "%s", err.text);
    type_release(type);
    refused(DECODE_MAX_DEPTH, -ELOOP, "more than 1000");
    refused(NULL_HANDLE, -EINVAL, "MPI_DATATYPE_NULL");
    kind = INNER_NULL;
    refused(3, -EINVAL, "MPI_DATATYPE_NULL");
    kind = PADDED;
    CHECK(decode(1, &type, &err) == 0 && type->lb == -2 && type_extent(type) == 8, "MPI's bounds");
    type_release(type);
    kind = LESS;
    refused(1, -ENOTSUP, "less");
    kind = DISAGREES;
    refused(1, -ENOTSUP, "2 bytes");
    kind = UNKNOWN;
    refused(1, -ENOTSUP, "does not know");
    keeps_what_it_decodes();
    runs_of_bytes();
    fake_free();
    printf("%d failures\n", failures);
    return failures != 0;
}
