/* What stays out of a node's memory: the least useful, and never the index. */
#include "stage/fit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stage/space.h"
#include "head_of.h"

#define PAGE 4096u
#define HEAD_ROOM (1u << 20)

static const struct {
    const char *path;
    uint32_t kind, bytes, order;
} tree[] = {
    {"/.brigade", BRG_DIR, 0, BRG_NONE},
    {"/.brigade/lib", BRG_FILE, 30000, BRG_NONE},
    {"/sw", BRG_DIR, 0, 0},
    {"/sw/__pycache__", BRG_DIR, 0, 1},
    {"/sw/__pycache__/small.cpython-311.pyc", BRG_FILE, 900, 2},
    {"/sw/big.so", BRG_FILE, 400000, 3},
    {"/sw/middle.so", BRG_FILE, 90000, 4},
    {"/sw/small.py", BRG_FILE, 800, 5},
    {"/sw/smaller.py", BRG_FILE, 700, 6},
    {"/sw/unused", BRG_FILE, 10, BRG_NONE},
};
#define N (sizeof tree / sizeof *tree)

static _Alignas(8) char head[HEAD_ROOM];
static char bytes[500000];

static void make_head(void)
{
    char path[] = "/tmp/brigade-fit-XXXXXX";
    struct brg_error err = {0};
    struct brg_image_options options = {PAGE, 3, 1};
    struct brg_image_writer *w = NULL;
    int fd = mkstemp(path);
    NEED(fd >= 0);
    NEED(brg_image_writer_create(path, &options, &w, &err) == 0);
    NEED(brg_image_writer_add_root(w, "/sw", &err) == 0);
    for (size_t i = 0; i < N; i++) {
        memset(bytes, (int)i + 1, sizeof bytes); /* no two of one content */
        struct brg_image_entry e = {.path = tree[i].path,
                                    .kind = tree[i].kind,
                                    .order = tree[i].order,
                                    .mode = 0755,
                                    .data = tree[i].kind == BRG_FILE ? bytes : NULL,
                                    .data_bytes = tree[i].bytes};
        NEED(brg_image_writer_add_entry(w, &e, &err) == 0);
    }
    head_of(w, path, fd, head, sizeof head);
}

static int kept(const char *path)
{
    const struct brg_index *x = brg_head_index(head);
    uint32_t found = brg_index_find(x, path, strlen(path));
    NEED(found != BRG_NONE);
    const struct brg_entry *e = &brg_entries(x)[found];
    CHECK((e->content != BRG_NONE) == !!(e->flags & BRG_HAS_CONTENT));
    return e->content != BRG_NONE;
}

static uint64_t whole(void)
{
    return space_needed(head, PAGE).bytes;
}

/* Fits the image into all that it needs less `missing`; returns the result's code. */
static int fit_less(uint64_t missing, struct fit *fit, struct brg_error *err)
{
    make_head();
    return fit_memory(head, PAGE, whole() - missing, fit, err);
}

static void what_fits_is_left_alone(void)
{
    static char before[HEAD_ROOM];
    struct brg_error err;
    struct fit fit;
    make_head();
    memcpy(before, head, sizeof head);
    CHECK(fit_memory(head, PAGE, whole(), &fit, &err) == 0);
    CHECK(fit.left_out_files == 0 && fit.left_out_bytes == 0 && fit.whole_bytes == whole());
    CHECK(memcmp(before, head, sizeof head) == 0);
}

/* Room that a large file leaves is used for what is less useful and fits. */
static void files_go_in_order_of_use_and_size(void)
{
    static const char *const names[] = {"/sw/unused", "/sw/small.py", "/sw/big.so", "/sw/middle.so",
                                        "/sw/smaller.py"};
    static const struct {
        uint64_t missing;
        const char *out; /* of `names`, by number */
    } cases[] = {{1, "0"},
                 {PAGE, "0"},
                 {PAGE + 1, "01"},
                 {2 * PAGE, "01"},
                 {2 * PAGE + 1, "2"},
                 {401408, "2"},
                 {401408 + PAGE, "20"},
                 {401408 + 2 * PAGE + 1, "23"},
                 {401408 + 90112 + 3 * PAGE, "23014"}};
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        struct brg_error err;
        struct fit fit;
        CHECK(fit_less(cases[n].missing, &fit, &err) == 0);
        for (int i = 0; i < 5; i++)
            if (kept(names[i]) == (strchr(cases[n].out, '0' + i) != NULL)) {
                fprintf(stderr, "%s, with %lu bytes too few\n", names[i],
                        (unsigned long)cases[n].missing);
                failed_checks++;
            }
        CHECK(fit.left_out_files == strlen(cases[n].out));
        CHECK(kept("/.brigade/lib"));
        CHECK(whole() <= fit.whole_bytes - cases[n].missing);
    }
}

static void the_largest_are_named_first(void)
{
    struct brg_error err;
    struct fit fit;
    CHECK(fit_less(401408 + 90112 + 2 * PAGE, &fit, &err) == 0);
    const struct brg_index *x = brg_head_index(head);
    CHECK(fit.left_out_bytes == 10 + 800 + 400000 + 90000);
    CHECK_TEXT(brg_string(x, brg_entries(x)[fit.largest[0]].path), "/sw/big.so");
    CHECK_TEXT(brg_string(x, brg_entries(x)[fit.largest[1]].path), "/sw/middle.so");
    CHECK_TEXT(brg_string(x, brg_entries(x)[fit.largest[3]].path), "/sw/unused");
    CHECK(fit.largest[4] == BRG_NONE);
}

static void a_cut_head_is_a_sound_one_with_another_id(void)
{
    struct brg_error err;
    struct fit fit;
    char first[BRG_ID_TEXT], second[BRG_ID_TEXT], third[BRG_ID_TEXT];
    make_head();
    brg_id_text(((struct brg_image_header *)head)->id, first);
    CHECK(fit_less(PAGE, &fit, &err) == 0);
    brg_id_text(((struct brg_image_header *)head)->id, second);
    CHECK(brg_header_check(head, 0, "the head", &err) == 0);
    CHECK(brg_head_check(head, "the head", &err) == 0);
    CHECK(fit_less(PAGE - 1, &fit, &err) == 0); /* the same is left out */
    brg_id_text(((struct brg_image_header *)head)->id, third);
    CHECK(strcmp(first, second) != 0);
    CHECK_TEXT(third, second);
}

static void too_little_even_for_the_index_is_an_error(void)
{
    struct brg_error err = {0};
    struct fit fit;
    make_head();
    CHECK(fit_memory(head, PAGE, 32768, &fit, &err) == -E2BIG);
    CHECK(strstr(err.text, "--memory") != NULL);
    CHECK(kept("/sw/big.so"));
}

static void the_least_is_the_index_and_our_own_parts(void)
{
    struct brg_error err = {0};
    struct fit fit;
    make_head();
    CHECK(fit_memory(head, PAGE, FIT_LEAST, &fit, &err) == 0);
    CHECK(fit.left_out_files == 6 && kept("/.brigade/lib"));
    CHECK(!kept("/sw/small.py") && !kept("/sw/unused"));
}

int main(void)
{
    RUN(what_fits_is_left_alone);
    RUN(files_go_in_order_of_use_and_size);
    RUN(the_largest_are_named_first);
    RUN(a_cut_head_is_a_sound_one_with_another_id);
    RUN(too_little_even_for_the_index_is_an_error);
    RUN(the_least_is_the_index_and_our_own_parts);
    return failed_checks != 0;
}
