/* What a look-up says, on a tree with something of everything. */
#include "small_image.h"

static struct brg_image *image;
static const struct brg_index *x;

/* "exists PATH", "missing ERRNO PATH", "unknown OUT" or "outside OUT" */
static const char *say(const char *path, int follow)
{
    static char text[16384];
    char out[8192] = "?";
    uint32_t e = BRG_NONE;
    int err = 0;
    enum brg_found found = brg_index_resolve(x, path, follow, &e, &err, out, sizeof out);
    const char *entry = e == BRG_NONE ? "?" : brg_string(x, brg_entries(x)[e].path);
    if (found == BRG_EXISTS)
        snprintf(text, sizeof text, "exists %s", entry);
    else if (found == BRG_MISSING)
        snprintf(text, sizeof text, "missing %s %s", err == ENOENT ? "ENOENT" : "ENOTDIR", entry);
    else
        snprintf(text, sizeof text, "%s %s", found == BRG_UNKNOWN ? "unknown" : "outside", out);
    return text;
}
#define STAT(path, want) CHECK_TEXT(say(path, 1), want)
#define LSTAT(path, want) CHECK_TEXT(say(path, 0), want)

static void a_canonical_path_exists(void)
{
    STAT("/sw", "exists /sw");
    STAT("/sw/bin/app", "exists /sw/bin/app");
    STAT("/sw/lib/known", "exists /sw/lib/known");
    STAT("/sw/home", "exists /sw/home");
}

static void dots_and_slashes_are_taken_physically(void)
{
    STAT("//sw///bin/./app", "exists /sw/bin/app");
    STAT("/sw/lib/../bin/app", "exists /sw/bin/app");
    STAT("/sw/..//../sw/bin/.", "exists /sw/bin");
    STAT("/sw/bin/..", "exists /sw");
    STAT("/sw/lib64/../bin/app", "exists /sw/bin/app");
}

static void links_are_followed_in_the_middle_always_and_at_the_end_if_asked(void)
{
    STAT("/sw/lib64/libm.so", "exists /sw/lib/libm.so");
    STAT("/sw/lib64", "exists /sw/lib");
    LSTAT("/sw/lib64", "exists /sw/lib64");
    LSTAT("/sw/lib64/", "exists /sw/lib");
    LSTAT("/sw/lib64/.", "exists /sw/lib");
    STAT("/sw/up/app", "exists /sw/bin/app");
    STAT("/sw/up/../lib64/../up/app", "exists /sw/bin/app");
}

static void a_link_outside_the_roots_leads_into_them(void)
{
    STAT("/home/seen", "exists /sw/home/seen");
    STAT("/home/gone", "missing ENOENT /sw/home/gone");
    STAT("/home/else", "unknown /sw/home/else");
}

static void a_name_that_a_listed_directory_lacks_is_missing(void)
{
    STAT("/sw/bin/none", "missing ENOENT /sw/bin");
    STAT("/sw/bin/none/deep/er", "missing ENOENT /sw/bin");
    STAT("/sw/lib64/none", "missing ENOENT /sw/lib");
    STAT("/sw/nowhere", "missing ENOENT /sw/lib");
    LSTAT("/sw/nowhere", "exists /sw/nowhere");
    STAT("/sw/none/../bin", "missing ENOENT /sw");
}

static void a_known_absence_is_missing_with_its_errno(void)
{
    STAT("/sw/home/gone", "missing ENOENT /sw/home/gone");
    STAT("/sw/home/gone/", "missing ENOENT /sw/home/gone");
    STAT("/sw/home/gone/below", "missing ENOENT /sw/home/gone");
    STAT("/sw/bin/app/x", "missing ENOTDIR /sw/bin/app/x");
}

static void a_file_is_no_directory(void)
{
    STAT("/sw/bin/app/", "missing ENOTDIR /sw/bin/app");
    STAT("/sw/bin/app/.", "missing ENOTDIR /sw/bin/app");
    STAT("/sw/bin/app/..", "missing ENOTDIR /sw/bin/app");
    STAT("/sw/bin/app/y", "missing ENOTDIR /sw/bin/app");
}

static void what_nobody_looked_up_is_unknown(void)
{
    STAT("/sw/home/else", "unknown /sw/home/else");
    STAT("/sw/home/else/../seen", "unknown /sw/home/else/../seen");
    STAT("/sw/part", "unknown /sw/home/else");
    STAT("/sw/part/x/", "unknown /sw/home/else/x/");
    STAT("/sw/home/pipe", "unknown /sw/home/pipe");
}

static void what_lies_outside_is_outside_and_says_where_to_go(void)
{
    STAT("/etc/passwd", "outside /etc/passwd");
    STAT("/", "outside /");
    LSTAT("/home", "outside /home");
    STAT("/swan", "outside /swan");
    STAT("/sw/out/certs/./a", "outside /etc/ssl/certs/./a");
    STAT("/sw/bin/python", "outside /usr/bin/python3");
    LSTAT("/sw/bin/python", "exists /sw/bin/python");
    STAT("/sw/../etc", "outside /etc");
    STAT("/etc/../sw/bin/app", "outside /etc/../sw/bin/app");
    STAT("sw/bin/app", "outside sw/bin/app");
    STAT("", "outside ");
}

static void a_loop_is_left_to_the_kernel_with_the_path_as_given(void)
{
    STAT("/sw/loop", "unknown /sw/loop");
    STAT("/sw/./loop/x", "unknown /sw/./loop/x");
    LSTAT("/sw/loop", "exists /sw/loop");
}

static void a_name_or_path_too_long_is_left_to_the_kernel(void)
{
    char path[6000] = "/sw/bin/";
    memset(path + 8, 'a', 256);
    path[8 + 255] = '\0';
    CHECK(strncmp(say(path, 1), "missing", 7) == 0);
    path[8 + 255] = 'a';
    path[8 + 256] = '\0';
    CHECK(strncmp(say(path, 1), "unknown", 7) == 0);
    for (size_t i = 0; i < 4200; i += 2)
        memcpy(path + 3 + i, "/.", 3);
    CHECK(strncmp(say(path, 1), "unknown", 7) == 0);
    path[4095] = '\0'; /* the longest that the kernel takes */
    CHECK_TEXT(say(path, 1), "exists /sw");
}

static void a_small_out_gets_no_half_of_a_path(void)
{
    char out[8] = "untold";
    uint32_t e;
    int err;
    CHECK(brg_index_resolve(x, "/sw/out/certs", 1, &e, &err, out, sizeof out) == BRG_OUTSIDE);
    CHECK_TEXT(out, "");
    CHECK(brg_index_resolve(x, "/sw/out/certs", 1, &e, &err, NULL, 0) == BRG_OUTSIDE);
}

static void answers_are_found_by_context_requester_and_name(void)
{
    const struct brg_answer *a = brg_index_answer(x, 7, "/sw/bin/app", "libm.so");
    NEED(a);
    CHECK_TEXT(brg_string(x, a->path), "/sw/lib64/libm.so");
    CHECK(a->entry == brg_index_find(x, "/sw/lib/libm.so", 15)); /* through the link */
    a = brg_index_answer(x, 7, "/sw/bin/app", "libgone.so");
    NEED(a);
    CHECK(a->path.len == 0 && a->entry == BRG_NONE);
    CHECK(!brg_index_answer(x, 8, "/sw/bin/app", "libm.so"));
    CHECK(!brg_index_answer(x, 7, "/sw/bin/ap", "libm.so"));
    CHECK(!brg_index_answer(x, 7, "/sw/bin/app", "libm"));
    CHECK(brg_search_context("/a", "b") != brg_search_context("/ab", ""));
}

static void children_that_exist_lie_side_by_side_by_name(void)
{
    const struct brg_entry *sw = &brg_entries(x)[brg_index_find(x, "/sw", 3)];
    const char *names[] = {"bin", "home", "lib", "lib64", "loop", "nowhere", "out", "part", "up"};
    CHECK(sw->n_children == 9);
    for (uint32_t i = 0; i < sw->n_children && i < 9; i++) {
        const struct brg_entry *child = &brg_entries(x)[sw->first_child + i];
        CHECK_TEXT(brg_string(x, child->path) + child->name_off, names[i]);
    }
    const struct brg_entry *home = &brg_entries(x)[brg_index_find(x, "/sw/home", 8)];
    CHECK(home->n_children == 2); /* not the absence */
    const struct brg_entry *top = &brg_entries(x)[brg_index_find(x, "/", 1)];
    CHECK(top->parent == BRG_NONE && top->n_children == 2);
}

static void equal_contents_are_stored_once(void)
{
    const struct brg_entry *a = &brg_entries(x)[brg_index_find(x, "/sw/lib/libm.so", 15)];
    const struct brg_entry *b = &brg_entries(x)[brg_index_find(x, "/sw/lib/libm.so.6", 17)];
    CHECK(a->content == b->content && a->content != BRG_NONE);
    const struct brg_entry *known = &brg_entries(x)[brg_index_find(x, "/sw/lib/known", 13)];
    CHECK(known->content == BRG_NONE && !(known->flags & BRG_HAS_CONTENT));
}

static void forty_links_are_followed_and_not_one_more(void)
{
    struct brg_error err;
    char file[] = "forty.img", id[33], name[16], target[16];
    struct brg_image_writer *w = small_writer(file, 4096);
    NEED(brg_image_writer_add_root(w, "/r", &err) == 0);
    struct spec dir = {"/r", BRG_DIR, NULL, BRG_LISTED, 0}, end = {"/r/l0", BRG_FILE, "x", 0, 0};
    NEED(small_add(w, &dir, &err) == 0 && small_add(w, &end, &err) == 0);
    for (int i = 1; i <= 41; i++) {
        snprintf(name, sizeof name, "/r/l%d", i);
        snprintf(target, sizeof target, "l%d", i - 1);
        struct spec link = {name, BRG_SYMLINK, target, 0, 0};
        NEED(small_add(w, &link, &err) == 0);
    }
    NEED(brg_image_writer_commit(w, NULL, NULL, NULL, id, &err) == 0);
    brg_image_writer_destroy(w);
    struct brg_image *forty = NULL;
    NEED(brg_image_open(file, &forty, &err) == 0);
    x = brg_image_index(forty);
    STAT("/r/l40", "exists /r/l0");
    STAT("/r/l41", "unknown /r/l41");
    LSTAT("/r/l41", "exists /r/l41");
    brg_image_close(forty);
    unlink(file);
    x = brg_image_index(image);
}

static void a_root_without_an_entry_is_still_a_directory_on_the_way(void)
{
    struct brg_error err;
    struct spec deep = {"/r/a/b", BRG_FILE, "x", 0, 0};
    small_image("hole.img", "/r/a", &deep, 1);
    struct brg_image *hole = NULL;
    NEED(brg_image_open("hole.img", &hole, &err) == 0);
    x = brg_image_index(hole);
    STAT("/r/./a/b", "exists /r/a/b");
    STAT("/r/a", "unknown /r/a");
    STAT("/r/a/c", "unknown /r/a/c");
    STAT("/r", "outside /r");
    STAT("/r/c", "outside /r/c");
    brg_image_close(hole);
    unlink("hole.img");
    x = brg_image_index(image);
}

int main(void)
{
    struct brg_error err;
    small_image("everything.img", "/sw", everything, N_EVERYTHING);
    NEED(brg_image_open("everything.img", &image, &err) == 0);
    x = brg_image_index(image);
    RUN(a_canonical_path_exists);
    RUN(dots_and_slashes_are_taken_physically);
    RUN(links_are_followed_in_the_middle_always_and_at_the_end_if_asked);
    RUN(a_link_outside_the_roots_leads_into_them);
    RUN(a_name_that_a_listed_directory_lacks_is_missing);
    RUN(a_known_absence_is_missing_with_its_errno);
    RUN(a_file_is_no_directory);
    RUN(what_nobody_looked_up_is_unknown);
    RUN(what_lies_outside_is_outside_and_says_where_to_go);
    RUN(a_loop_is_left_to_the_kernel_with_the_path_as_given);
    RUN(a_name_or_path_too_long_is_left_to_the_kernel);
    RUN(a_small_out_gets_no_half_of_a_path);
    RUN(answers_are_found_by_context_requester_and_name);
    RUN(children_that_exist_lie_side_by_side_by_name);
    RUN(equal_contents_are_stored_once);
    RUN(forty_links_are_followed_and_not_one_more);
    RUN(a_root_without_an_entry_is_still_a_directory_on_the_way);
    brg_image_close(image);
    unlink("everything.img");
    return failed_checks != 0;
}
