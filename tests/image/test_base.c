/* Contents of an older image serve where their sources are what they were, and are never believed
 * where they are not. Sources that must not be read again are taken away before the commit. */
#include <errno.h>

#include "small_image.h"
#include "sources.h"

static struct brg_error err;
static const char *names[] = {"one", "two", "three", "four", "five"};
enum {
    N = 5,
    BYTES = 300000,
    BLOCK = 64 << 10
};

static struct brg_image_entry entries[N];

/* An image of the first n, as `entries` says they are; on another image's contents unless base is
 * NULL. */
static int image_told(const char *file, int n, const char *base, uint32_t block_bytes,
                      brg_image_progress *progress, void *user)
{
    struct brg_image_options o = {block_bytes, 3, 2};
    struct brg_image_writer *w = NULL;
    char id[33];
    NEED(brg_image_writer_create(file, &o, &w, &err) == 0);
    if (base)
        NEED(brg_image_writer_set_base(w, base, &err) == 0);
    NEED(brg_image_writer_add_root(w, "/r", &err) == 0);
    for (int i = 0; i < n; i++)
        NEED(brg_image_writer_add_entry(w, &entries[i], &err) == 0);
    int rc = brg_image_writer_commit(w, progress, NULL, user, id, &err);
    brg_image_writer_destroy(w);
    return rc;
}

static int image_of(const char *file, int n, const char *base, uint32_t block_bytes)
{
    return image_told(file, n, base, block_bytes, NULL, NULL);
}

static void look(int i)
{
    static char paths[N][32];
    snprintf(paths[i], sizeof paths[i], "/r/%s", names[i]);
    entries[i] = file_entry(paths[i], names[i]);
    entries[i].order = (uint32_t)i;
}

static void make(int i, size_t n, unsigned seed)
{
    make_file(names[i], n, seed);
    look(i);
}

static void make_all(void)
{
    for (int i = 0; i < N; i++)
        make(i, BYTES + 4096 * (unsigned)i, (unsigned)i);
}

/* Whether an image holds what is in a file, and is whole. */
static int holds(const char *image, int i, const char *file)
{
    struct brg_image *opened = NULL;
    NEED(brg_image_open(image, &opened, &err) == 0);
    const struct brg_index *x = brg_image_index(opened);
    uint32_t e = brg_index_find(x, entries[i].path, strlen(entries[i].path));
    NEED(e != BRG_NONE && brg_entries(x)[e].content != BRG_NONE);
    size_t n = brg_entries(x)[e].size;
    char *have = malloc(n), *want = malloc(n + 1);
    NEED(have && want);
    NEED(brg_image_read_content(opened, brg_entries(x)[e].content, 0, have, n, &err) == 0);
    int fd = open(file, O_RDONLY);
    NEED(fd >= 0);
    int same = brg_io_pread(fd, want, n + 1, 0) == (ssize_t)n && memcmp(have, want, n) == 0;
    close(fd);
    same = same && brg_image_verify(opened, NULL, NULL, &err) == 0;
    brg_image_close(opened);
    free(have);
    free(want);
    return same;
}

static struct brg_image_info info_of(const char *image)
{
    struct brg_image *opened = NULL;
    struct brg_image_info info;
    NEED(brg_image_open(image, &opened, &err) == 0);
    brg_image_get_info(opened, &info);
    brg_image_close(opened);
    return info;
}

/* Takes a source away, so that reading it fails; its bytes are in NAME.kept. */
static void take_away(int i)
{
    char kept[32];
    snprintf(kept, sizeof kept, "%s.kept", names[i]);
    NEED(rename(names[i], kept) == 0);
}

static void what_has_not_changed_is_not_read_again(void)
{
    make_all();
    NEED(image_of("old.img", 4, NULL, BLOCK) == 0);
    for (int i = 0; i < 4; i++)
        take_away(i);
    CHECK(image_of("new.img", 5, "old.img", BLOCK) == 0);
    const char *files[] = {"one.kept", "two.kept", "three.kept", "four.kept", "five"};
    for (int i = 0; i < 5; i++)
        CHECK(holds("new.img", i, files[i]));
    CHECK(info_of("new.img").n_contents == 5);
    CHECK(image_of("none.img", 5, NULL, BLOCK) == -ENOENT && strstr(err.text, "one"));
}

static void an_image_may_be_its_own_base(void)
{
    make_all();
    NEED(image_of("old.img", 3, NULL, BLOCK) == 0);
    for (int i = 0; i < 3; i++)
        take_away(i);
    CHECK(image_of("old.img", 4, "old.img", BLOCK) == 0);
    take_away(3);
    CHECK(image_of("old.img", 5, "old.img", BLOCK) == 0);
    CHECK(holds("old.img", 0, "one.kept") && holds("old.img", 3, "four.kept") &&
          holds("old.img", 4, "five"));
}

static void what_has_changed_is_read_again(void)
{
    make_all();
    NEED(image_of("old.img", 5, NULL, BLOCK) == 0);
    make(2, BYTES + 2 * 4096, 77); /* as large as before */
    CHECK(image_of("new.img", 5, "old.img", BLOCK) == 0);
    for (int i = 0; i < 5; i++)
        CHECK(holds("new.img", i, names[i]));
    CHECK(info_of("new.img").n_contents == 6); /* what it was before is left behind */
    uint64_t *said[] = {&entries[2].ino, (uint64_t *)&entries[2].mtime_ns,
                        (uint64_t *)&entries[2].ctime_ns};
    take_away(2);
    for (int i = 0; i < 3; i++) {
        ++*said[i];
        CHECK(image_of("none.img", 5, "new.img", BLOCK) == -ENOENT);
        --*said[i];
    }
    CHECK(image_of("none.img", 5, "new.img", BLOCK) == 0);
}

static void equal_contents_are_one_with_the_base(void)
{
    make_all();
    NEED(image_of("old.img", 4, NULL, BLOCK) == 0);
    make(4, BYTES, 0); /* the bytes of the first */
    CHECK(image_of("new.img", 5, "old.img", BLOCK) == 0);
    CHECK(info_of("new.img").n_contents == 4 && holds("new.img", 4, "one"));
}

static void a_base_of_which_little_serves_is_left_out(void)
{
    make_all();
    NEED(image_of("old.img", 5, NULL, BLOCK) == 0);
    NEED(image_of("want.img", 3, NULL, BLOCK) == 0);
    CHECK(image_of("new.img", 3, "old.img", BLOCK) == 0);
    CHECK(same_bytes("new.img", "want.img"));
    NEED(image_of("want.img", 5, NULL, BLOCK / 2) == 0);
    CHECK(image_of("new.img", 5, "old.img", BLOCK / 2) == 0); /* its blocks are others */
    CHECK(same_bytes("new.img", "want.img"));
}

static void a_damaged_base_is_done_without(void)
{
    make_all();
    NEED(image_of("old.img", 4, NULL, BLOCK) == 0);
    NEED(image_of("want.img", 5, NULL, BLOCK) == 0);
    struct brg_image_info info = info_of("old.img");
    const uint64_t places[] = {info.data_off + 100, (info.data_off + info.total_bytes) / 2,
                               info.total_bytes - 100};
    for (int i = 0; i < 3; i++) {
        int fd = open("old.img", O_RDWR);
        char byte;
        NEED(fd >= 0 && brg_io_pread(fd, &byte, 1, places[i]) == 1);
        byte ^= 1;
        NEED(brg_io_pwrite(fd, &byte, 1, places[i], NULL) == 0);
        CHECK(image_of("new.img", 5, "old.img", BLOCK) == 0);
        CHECK(same_bytes("new.img", "want.img"));
        byte ^= 1;
        NEED(brg_io_pwrite(fd, &byte, 1, places[i], NULL) == 0);
        close(fd);
    }
    take_away(0);
    CHECK(image_of("new.img", 5, "old.img", BLOCK) == 0); /* undamaged it serves */
}

static void whole_blocks_only_and_less_than_one(void)
{
    const size_t sizes[] = {BLOCK, 2 * BLOCK, 5, 0};
    for (int i = 0; i < 4; i++) {
        make(0, sizes[i], 9);
        make(1, 1000, 10);
        NEED(image_of("old.img", 1, NULL, BLOCK) == 0);
        CHECK(image_of("new.img", 2, "old.img", BLOCK) == 0);
        CHECK(holds("new.img", 0, "one") && holds("new.img", 1, "two"));
    }
}

struct told {
    unsigned calls, most;
    uint64_t last, total;
};

static int count(void *user, uint64_t done, uint64_t total)
{
    struct told *told = user;
    told->total = total;
    told->last = done;
    return ++told->calls > told->most;
}

static void each_block_that_is_copied_is_told_and_may_be_the_last(void)
{
    make_all();
    NEED(image_of("old.img", 4, NULL, BLOCK) == 0);
    unsigned blocks = info_of("old.img").n_blocks;
    struct told all = {.most = 1000}, some = {.most = 3};
    CHECK(image_told("new.img", N, "old.img", BLOCK, count, &all) == 0);
    CHECK(all.calls == blocks + 1 && all.last == all.total); /* and the one that is read */
    unlink("new.img");
    CHECK(image_told("new.img", N, "old.img", BLOCK, count, &some) == -ECANCELED &&
          some.calls == 4);
    CHECK(some.last == 4 * BLOCK && access("new.img", F_OK) != 0);
}

static void what_is_no_image_is_no_base(void)
{
    struct brg_image_writer *w = small_writer("new.img", 0);
    CHECK(brg_image_writer_set_base(w, "one", &err) == -EBADMSG);
    CHECK(brg_image_writer_set_base(w, "gone", &err) == -ENOENT);
    brg_image_writer_destroy(w);
}

int main(void)
{
    RUN(what_has_not_changed_is_not_read_again);
    RUN(an_image_may_be_its_own_base);
    RUN(what_has_changed_is_read_again);
    RUN(equal_contents_are_one_with_the_base);
    RUN(a_base_of_which_little_serves_is_left_out);
    RUN(a_damaged_base_is_done_without);
    RUN(whole_blocks_only_and_less_than_one);
    RUN(each_block_that_is_copied_is_told_and_may_be_the_last);
    RUN(what_is_no_image_is_no_base);
    for (int i = 0; i < N; i++) {
        char kept[32];
        snprintf(kept, sizeof kept, "%s.kept", names[i]);
        unlink(kept);
        unlink(names[i]);
    }
    const char *images[] = {"old.img", "new.img", "none.img", "want.img"};
    for (int i = 0; i < 4; i++)
        unlink(images[i]);
    return failed_checks != 0;
}
