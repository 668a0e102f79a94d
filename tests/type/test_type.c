/* Types against the same written out in full: bounds, every run, seeking, and what is refused. */
#include <errno.h>

#include "claim.h"
#include "random_type.h"
#include "type/file_view.h"
#include "type/walk.h"

#ifndef ROUNDS
#define ROUNDS 20000
#endif

static int round_now;

/* Elements of a map that touch, as one. */
static int merge(const struct map *m, struct element *runs)
{
    int n = 0;
    for (int i = 0; i < m->n; i++) {
        if (n && runs[n - 1].at + runs[n - 1].bytes == m->elements[i].at)
            runs[n - 1].bytes += m->elements[i].bytes;
        else
            runs[n++] = m->elements[i];
    }
    return n;
}

static int are_apart(const struct element *runs, int n)
{
    for (int i = 1; i < n; i++)
        if (runs[i].at < runs[i - 1].at + runs[i - 1].bytes)
            return 0;
    return 1;
}

static void check_bounds(const struct type *t, const struct map *m)
{
    CHECK((int64_t)type_size(t) == map_size(m), "round %d: %llu", round_now,
          (unsigned long long)type_size(t));
    CHECK(t->lb == map_lb(m) && t->ub == map_ub(m), "round %d: %lld %lld, not %lld %lld", round_now,
          (long long)t->lb, (long long)t->ub, (long long)map_lb(m), (long long)map_ub(m));
    CHECK(type_true_lb(t) == map_true_lb(m) && type_true_ub(t) == map_true_ub(m), "round %d",
          round_now);
}

/* From byte `position` of the data on: the runs of the walk are `runs`, cut at the beginning. Some
 * are taken in parts. */
static void check_walk(struct walk *w, const struct element *runs, int n, int64_t position)
{
    int i = 0;
    while (i < n && position >= runs[i].bytes)
        position -= runs[i++].bytes;
    for (; i < n; i++) {
        int64_t at = runs[i].at + position, bytes = runs[i].bytes - position;
        CHECK(w->run.at == at && (int64_t)w->run.bytes == bytes,
              "round %d, run %d of %d: %lld+%llu, not %lld+%lld", round_now, i, n,
              (long long)w->run.at, (unsigned long long)w->run.bytes, (long long)at,
              (long long)bytes);
        if ((int64_t)w->run.bytes != bytes)
            return;
        position = 0;
        if (bytes > 1 && below(4) == 0) {
            walk_skip(w, 1);
            CHECK(w->run.at == at + 1 && (int64_t)w->run.bytes == bytes - 1, "round %d", round_now);
        }
        walk_skip(w, w->run.bytes);
    }
    CHECK(w->run.bytes == 0, "round %d: more than %d runs", round_now, n);
    walk_next(w);
    CHECK(w->run.bytes == 0, "round %d: the end stays the end", round_now);
}

/* Bytes of data before `at`, of runs that are apart. */
static int64_t bytes_before(const struct element *runs, int n, int64_t at)
{
    int64_t before = 0;
    for (int i = 0; i < n && runs[i].at < at; i++)
        before += at - runs[i].at < runs[i].bytes ? at - runs[i].at : runs[i].bytes;
    return before;
}

static void check_runs(const struct type *t, const struct map *m)
{
    static struct element runs[MOST_ELEMENTS];
    struct walk w;
    int n = merge(m, runs), apart = are_apart(runs, n);
    if (n) {
        CHECK(t->data.layout->runs == (uint64_t)n, "round %d: %llu, not %d", round_now,
              (unsigned long long)t->data.layout->runs, n);
        CHECK(t->data.layout->apart == apart, "round %d: apart is %d", round_now, apart);
        CHECK(t->data.layout->rising >= apart, "round %d", round_now);
    }
    walk_start(&w, t->data, 0);
    check_walk(&w, runs, n, 0);
    for (int k = 0; k < 3; k++) {
        int64_t position = below(map_size(m) + 2);
        walk_start(&w, t->data, (uint64_t)position);
        check_walk(&w, runs, n, position);
        if (!apart)
            continue;
        int64_t at = map_true_lb(m) - 3 + below(map_true_ub(m) - map_true_lb(m) + 6);
        position = bytes_before(runs, n, at);
        CHECK((int64_t)walk_start_at(&w, t->data, at) == position, "round %d: %lld", round_now,
              (long long)at);
        check_walk(&w, runs, n, position);
    }
}

static void random_types(void)
{
    int seen[MAKERS] = {0}, compared = 0;
    for (round_now = 0; round_now < ROUNDS && failures < 10; round_now++) {
        random_state = (uint64_t)round_now;
        struct recipe *r = recipe_random(1 + (int)below(4), (int)below(2));
        struct map *m = recipe_map(r);
        if (!m->too_many) {
            check_bounds(r->type, m);
            check_runs(r->type, m);
            seen[r->maker]++;
            compared++;
        }
        free(m);
        recipe_destroy(r);
    }
    for (int i = 0; i < MAKERS; i++)
        CHECK(seen[i] > compared / 40, "maker %d: %d of %d", i, seen[i], compared);
}

/* ---- views ---- */

static void check_view(const struct file_view *v, const struct element *runs, int n, int64_t shift,
                       int64_t extent, int64_t etype)
{
    int64_t size = 0;
    for (int i = 0; i < n; i++)
        size += runs[i].bytes;
    for (int k = 0; k < 4; k++) {
        int64_t tile = below(3) ? below(5) : below(1 << 30), within = below(size), i = 0;
        int64_t position = tile * size + within, offset = shift + tile * extent;
        while (within >= runs[i].bytes)
            within -= runs[i++].bytes;
        offset += runs[i].at + within;
        CHECK(file_view_offset(v, (uint64_t)position) == offset, "round %d: position %lld",
              round_now, (long long)position);
        CHECK((int64_t)file_view_position(v, offset) == position, "round %d: offset %lld",
              round_now, (long long)offset);
        CHECK((int64_t)file_view_position(v, offset + 1) == position + 1, "round %d", round_now);
        CHECK((int64_t)file_view_end(v, offset) == (position + etype - 1) / etype, "round %d",
              round_now);
    }
}

static void random_views(void)
{
    static struct element runs[MOST_ELEMENTS];
    int made = 0;
    for (round_now = 0; round_now < ROUNDS && failures < 10; round_now++) {
        struct brg_error err = {0};
        struct file_view v;
        struct type *etype;
        random_state = (uint64_t)round_now;
        struct recipe *r = recipe_random(1 + (int)below(4), below(8) != 0);
        struct map *m = recipe_map(r);
        int64_t shift = below(100);
        if (m->too_many)
            m->n = 0;
        int n = merge(m, runs), apart = are_apart(runs, n);
        type_basic(below(3) || !map_size(m) ? 1 : map_size(m), &etype, NULL);
        int rc = file_view_create(&v, shift, etype, r->type, &err);
        if (n && map_true_lb(m) < 0)
            CHECK(rc == -EINVAL && strstr(err.text, "negative"), "round %d: %s", round_now,
                  err.text);
        else if (n && !apart)
            CHECK(rc == -EINVAL || rc == -ENOTSUP, "round %d: %d", round_now, rc);
        else if (n && map_extent(m) < map_true_ub(m) - map_true_lb(m))
            CHECK(rc == -ENOTSUP && strstr(err.text, "tiles"), "round %d: %s", round_now, err.text);
        else if (n) {
            CHECK(rc == 0, "round %d: %s", round_now, err.text);
            made++;
        }
        if (rc == 0 && n)
            check_view(&v, runs, n, shift, map_extent(m), (int64_t)type_size(etype));
        if (rc == 0)
            file_view_destroy(&v);
        type_release(etype);
        free(m);
        recipe_destroy(r);
    }
    CHECK(made > ROUNDS / 2, "%d views", made);
}

/* ---- by hand ---- */

static void nothing_is_written_out(void)
{
    const int64_t many = INT64_C(1) << 40;
    int64_t sizes[4] = {256, 256, 256, 64}, subsizes[4] = {64, 64, 64, 3};
    int64_t starts[4] = {5, 6, 7, 8};
    struct type *byte, *vector, *array, *twice, *of[3];
    struct walk w;
    type_basic(8, &byte, NULL);
    CHECK(type_vector(many, 1, 2, byte, &vector, NULL) == 0, "a vector of 2^40");
    CHECK(vector->data.layout->kind == LAYOUT_ROW && vector->data.layout->depth == 1, "one row");
    walk_start(&w, vector->data, (uint64_t)(many - 1) * 8 + 3);
    CHECK(w.run.at == (many - 1) * 16 + 3 && w.run.bytes == 5, "its last");
    CHECK(type_subarray(4, sizes, subsizes, starts, TYPE_ORDER_C, byte, &array, NULL) == 0, "4-D");
    CHECK(array->data.layout->depth == 3, "%d", array->data.layout->depth);
    CHECK(array->data.layout->runs == 64 * 64 * 64, "runs");
    of[0] = type_share(array);
    for (int i = 0; i < 14; i++) { /* each has the one before three times, at odd places */
        int64_t lengths[3] = {1, 1, 1},
                places[3] = {0, type_extent(of[0]) + 8, type_extent(of[0]) * 3};
        of[1] = of[2] = of[0];
        CHECK(type_struct(3, lengths, places, of, &twice, NULL) == 0, "struct %d", i);
        CHECK(twice->data.layout->kind == LAYOUT_LIST, "a list");
        type_release(of[0]);
        of[0] = twice;
    }
    CHECK(type_size(of[0]) == type_size(array) * 4782969, "shared, not copied");
    CHECK(type_contiguous(1, of[0], &twice, NULL) == 0, "one of it");
    CHECK(twice->data.layout == of[0]->data.layout, "is itself");
    type_release(twice);
    type_release(of[0]);
    type_release(array);
    type_release(vector);
    type_release(byte);
}

static void what_lies_together_is_one_run(void)
{
    int64_t sizes[3] = {4, 5, 6}, subsizes[3] = {2, 5, 6}, starts[3] = {1, 0, 0};
    int64_t lengths[3] = {1, 2, 1}, places[3] = {0, 1, 3}, apart[3] = {3, 5, 7};
    struct type *word, *t;
    type_basic(4, &word, NULL);
    type_subarray(3, sizes, subsizes, starts, TYPE_ORDER_C, word, &t, NULL);
    CHECK(t->data.layout->kind == LAYOUT_DATA && t->data.at == 120, "whole planes");
    type_release(t);
    type_indexed(3, lengths, places, word, &t, NULL);
    CHECK(t->data.layout->kind == LAYOUT_DATA, "blocks that touch");
    type_release(t);
    type_indexed_block(3, 1, apart, word, &t, NULL);
    CHECK(t->data.layout->kind == LAYOUT_ROW, "a list that is a vector");
    type_release(t);
    type_vector(3, 2, 2, word, &t, NULL);
    CHECK(t->data.layout->kind == LAYOUT_DATA, "a vector without gaps");
    type_release(t);
    type_release(word);
}

/* CHECKs that a constructor returns `code` and names `word`. */
#define REFUSED(call, rc_wanted, word)                                         \
    do {                                                                       \
        struct brg_error err = {.text = ""};                                   \
        int rc_got = (call);                                                   \
        CHECK(rc_got == (rc_wanted), "%d", rc_got);                            \
        CHECK(strstr(err.text, word), "'%s' does not say %s", err.text, word); \
    } while (0)

static void bad_arguments_are_named(void)
{
    const int64_t far = INT64_MAX / 3;
    int64_t n = 3, zero = 0, four = 4, minus = -1, bad[2] = {1, -2}, places[2] = {0, INT64_MAX};
    int64_t ones[2] = {1, 1};
    enum type_distribution block = TYPE_BLOCK, none = TYPE_NONE;
    int p = 2;
    struct type *word, *wide_type, *t = NULL;
    type_basic(4, &word, NULL);
    REFUSED(type_basic(-1, &t, &err), -EINVAL, "-1");
    REFUSED(type_contiguous(-5, word, &t, &err), -EINVAL, "contiguous: count is -5");
    REFUSED(type_vector(1, -2, 1, word, &t, &err), -EINVAL, "vector: blocklength is -2");
    REFUSED(type_hindexed(2, bad, places, word, &t, &err), -EINVAL, "blocklength 1 is -2");
    REFUSED(type_indexed_block(1, -2, places, word, &t, &err), -EINVAL, "indexed_block: block");
    REFUSED(type_hindexed(2, ones, places, word, &t, &err), -EOVERFLOW, "hindexed");
    REFUSED(type_contiguous(far, word, &t, &err), -EOVERFLOW, "contiguous");
    REFUSED(type_vector(3, 1, far, word, &t, &err), -EOVERFLOW, "vector");
    REFUSED(type_hvector(3, 1, INT64_MAX / 2, word, &t, &err), -EOVERFLOW, "hvector");
    REFUSED(type_resized(word, INT64_MAX, 1, &t, &err), -EOVERFLOW, "resized");
    REFUSED(type_subarray(0, &n, &n, &zero, TYPE_ORDER_C, word, &t, &err), -EINVAL, "ndims");
    REFUSED(type_subarray(1, &n, &four, &zero, TYPE_ORDER_C, word, &t, &err), -EINVAL, "subsize");
    REFUSED(type_subarray(1, &n, &n, &minus, TYPE_ORDER_C, word, &t, &err), -EINVAL, "start");
    REFUSED(type_darray(2, 2, 1, &n, &block, &minus, &p, TYPE_ORDER_C, word, &t, &err), -EINVAL,
            "rank is 2");
    REFUSED(type_darray(2, 0, 1, &n, &none, &minus, &p, TYPE_ORDER_C, word, &t, &err), -EINVAL,
            "not distributed");
    REFUSED(type_darray(2, 0, 1, &n, &block, &ones[0], &p, TYPE_ORDER_C, word, &t, &err), -EINVAL,
            "do not hold");
    REFUSED(type_darray(4, 0, 1, &n, &block, &minus, &p, TYPE_ORDER_C, word, &t, &err), -EINVAL,
            "grid");
    REFUSED(type_basic(INT64_MAX, &wide_type, &err), 0, "");
    REFUSED(type_contiguous(2, wide_type, &t, &err), -EOVERFLOW, "contiguous");
    CHECK(t == NULL, "the output is not touched");
    type_release(wide_type);
    type_release(word);
}

static void blocks_may_be_longer_than_their_dimension(void)
{
    const int processes = 1 << 20;
    const enum type_distribution cyclic = TYPE_CYCLIC;
    int64_t size = 3, block = INT64_MAX;
    struct type *byte, *far, *t = NULL;
    type_basic(1, &byte, NULL);
    type_resized(byte, 0, INT64_C(1) << 60, &far, NULL);
    for (int rank = 0; rank < 2; rank++) { /* the first process has all */
        int rc = type_darray(processes, rank, 1, &size, &cyclic, &block, &processes, TYPE_ORDER_C,
                             far, &t, NULL);
        CHECK(rc == 0 && type_size(t) == (rank ? 0 : 3) && type_extent(t) == 3 * type_extent(far),
              "rank %d: %d", rank, rc);
        type_release(t);
    }
    type_release(far);
    type_release(byte);
}

static void views_name_the_rule_that_is_broken(void)
{
    int64_t ones[2] = {1, 1}, back[2] = {8, 0}, over[2] = {0, 2};
    struct type *word, *twice, *falls, *overlaps, *bytes, *nothing, *near;
    struct file_view v;
    type_basic(4, &word, NULL);
    type_basic(6, &bytes, NULL);
    type_basic(0, &nothing, NULL);
    type_hvector(2, 1, 0, word, &twice, NULL);
    type_hindexed(2, ones, back, word, &falls, NULL);
    type_hindexed(2, ones, over, word, &overlaps, NULL);
    type_resized(word, 0, 3, &near, NULL);
    REFUSED(file_view_create(&v, -1, word, word, &err), -EINVAL, "displacement is -1");
    REFUSED(file_view_create(&v, 0, nothing, word, &err), -EINVAL, "etype has no bytes");
    REFUSED(file_view_create(&v, 0, word, bytes, &err), -EINVAL, "6 bytes");
    REFUSED(file_view_create(&v, 0, word, falls, &err), -EINVAL, "filetype goes back");
    REFUSED(file_view_create(&v, 0, falls, word, &err), -EINVAL, "");
    REFUSED(file_view_create(&v, 0, word, twice, &err), -ENOTSUP,
            "filetype has bytes that overlap");
    REFUSED(file_view_create(&v, 0, word, overlaps, &err), -ENOTSUP, "overlap");
    REFUSED(file_view_create(&v, 0, word, near, &err), -ENOTSUP, "tiles");
    REFUSED(file_view_create(&v, INT64_MAX - 3, word, word, &err), -EOVERFLOW, "first tile");
    CHECK(file_view_create(&v, 5, word, nothing, NULL) == 0, "it sees nothing");
    CHECK(file_view_offset(&v, 0) == -1 && file_view_position(&v, 100) == 0, "of a file");
    file_view_destroy(&v);
    CHECK(file_view_create(&v, INT64_MAX - 8, word, word, NULL) == 0, "two tiles");
    CHECK(file_view_offset(&v, 7) == INT64_MAX - 1 && file_view_offset(&v, 8) == -1, "no third");
    file_view_destroy(&v);
    struct type *all[] = {word, twice, falls, overlaps, bytes, nothing, near};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        type_release(all[i]);
}

static void depth_has_a_limit(void)
{
    struct type *byte, *of[2], *next;
    int64_t ones[2] = {1, 1}, places[2] = {0, 2};
    int depth = 0;
    type_basic(1, &byte, NULL);
    of[0] = type_share(byte);
    of[1] = byte;
    /* each is the one before, and a byte behind it */
    while (depth < 100 && type_struct(2, ones, places, of, &next, NULL) == 0) {
        type_release(of[0]);
        of[0] = next;
        places[1] += 2 + depth++ % 2; /* else it were a vector */
    }
    CHECK(depth == LAYOUT_MAX_DEPTH, "%d", depth);
    REFUSED(type_struct(2, ones, places, of, &next, &err), -ELOOP, "more than 64 types");
    for (int i = 0; i < 1000; i++) { /* what merges may be as deep as one likes */
        CHECK(type_contiguous(1, byte, &next, NULL) == 0, "contiguous %d", i);
        type_release(byte);
        byte = next;
    }
    type_release(of[0]);
    type_release(byte);
}

int main(void)
{
    random_types();
    random_views();
    nothing_is_written_out();
    what_lies_together_is_one_run();
    bad_arguments_are_named();
    blocks_may_be_longer_than_their_dimension();
    views_name_the_rule_that_is_broken();
    depth_has_a_limit();
    printf("%d failures\n", failures);
    return failures != 0;
}
