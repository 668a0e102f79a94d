/* Writing: the same input gives the same bytes; what contradicts itself is refused; a source that
 * cannot be trusted costs its content or the image; nothing half made is left behind. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <signal.h>

#include "base/io.h"
#include "small_image.h"
#include "sources.h"

static struct brg_error err;

static int temporaries(void)
{
    int n = 0;
    DIR *here = opendir(".");
    NEED(here);
    for (struct dirent *d; (d = readdir(here));)
        n += strstr(d->d_name, ".tmp") != NULL;
    closedir(here);
    return n;
}

static void mixed_image(const char *file, unsigned threads, int backwards)
{
    const char *sources[] = {"small", "twin", "large", "large2", "other"};
    struct brg_image_options o = {64 << 10, 3, threads};
    struct brg_image_writer *w = NULL;
    char id[33];
    NEED(brg_image_writer_create(file, &o, &w, &err) == 0);
    for (int k = 0; k < 5; k++) {
        int i = backwards ? 4 - k : k;
        char path[64];
        snprintf(path, sizeof path, "/r/%s", sources[i]);
        struct brg_image_entry e = file_entry(path, sources[i]);
        e.order = i == 4 ? BRG_IMAGE_NONE : (uint32_t)(10 - i);
        NEED(brg_image_writer_add_entry(w, &e, &err) == 0);
    }
    const char *roots[] = {"/r", "/q"};
    for (int k = 0; k < 2; k++)
        NEED(brg_image_writer_add_root(w, roots[backwards ? 1 - k : k], &err) == 0);
    for (int k = 0; k < 2; k++)
        NEED(brg_image_writer_add_answer(w, 1, "r", (k ^ backwards) ? "a" : "b", "/r/small",
                                         &err) == 0);
    NEED(brg_image_writer_commit(w, NULL, NULL, NULL, id, &err) == 0);
    brg_image_writer_destroy(w);
}

static void the_same_input_gives_the_same_bytes(void)
{
    mixed_image("one.img", 1, 0);
    mixed_image("many.img", 4, 0);
    mixed_image("back.img", 2, 1);
    CHECK(same_bytes("one.img", "many.img"));
    CHECK(same_bytes("one.img", "back.img"));
    struct brg_image *i = NULL;
    NEED(brg_image_open("one.img", &i, &err) == 0);
    CHECK(brg_image_verify(i, NULL, NULL, &err) == 0);
    const struct brg_index *x = brg_image_index(i);
    CHECK(x->n_contents == 3); /* the twins and the two large ones share */
    const struct brg_entry *first = &brg_entries(x)[brg_index_find(x, "/r/large2", 9)];
    CHECK(brg_contents(x)[first->content].raw_off == 0); /* in order of first use */
    const struct brg_entry *last = &brg_entries(x)[brg_index_find(x, "/r/other", 8)];
    CHECK(last->content == 2);
    brg_image_close(i);
    unlink("one.img");
    unlink("many.img");
    unlink("back.img");
}

static int last_refusal(const struct spec *specs, size_t n)
{
    char id[33];
    struct brg_image_writer *w = small_writer("bad.img", 0);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = small_add(w, &specs[i], &err);
    if (rc == 0)
        rc = brg_image_writer_commit(w, NULL, NULL, NULL, id, &err);
    brg_image_writer_destroy(w);
    CHECK(access("bad.img", F_OK) != 0);
    return rc;
}

static void entries_that_contradict_each_other_are_refused(void)
{
    const struct spec twice[] = {{"/a", BRG_FILE, "x", 0, 0}, {"/a", BRG_ABSENT, NULL, 0, ENOENT}};
    CHECK(last_refusal(twice, 2) == -EEXIST && strstr(err.text, "/a was added"));
    const struct spec link[] = {{"/a", BRG_SYMLINK, "b", 0, 0}, {"/a/c", BRG_FILE, "x", 0, 0}};
    CHECK(last_refusal(link, 2) == -EINVAL && strstr(err.text, "/a is a symbolic link"));
    const struct spec deep[] = {{"/a", BRG_SYMLINK, "b", 0, 0}, {"/a/c/d", BRG_FILE, "x", 0, 0}};
    CHECK(last_refusal(deep, 2) == -EINVAL);
    const struct spec file[] = {{"/a", BRG_FILE, "x", 0, 0}, {"/a/c", BRG_FILE, "x", 0, 0}};
    CHECK(last_refusal(file, 2) == -EINVAL);
    const struct spec gone[] = {{"/a", BRG_ABSENT, NULL, 0, ENOENT}, {"/a/c", BRG_DIR, NULL, 0, 0}};
    CHECK(last_refusal(gone, 2) == -EINVAL);
}

static void an_entry_that_cannot_be_is_refused_when_it_is_added(void)
{
    const struct spec bad[] = {
        {"a", BRG_FILE, NULL, 0, 0},
        {"/a/", BRG_FILE, NULL, 0, 0},
        {"/a//b", BRG_FILE, NULL, 0, 0},
        {"/a/./b", BRG_FILE, NULL, 0, 0},
        {"/a/..", BRG_FILE, NULL, 0, 0},
        {"", BRG_FILE, NULL, 0, 0},
        {"/a", 0, NULL, 0, 0},
        {"/a", 6, NULL, 0, 0},
        {"/a", BRG_SYMLINK, NULL, 0, 0},
        {"/a", BRG_SYMLINK, "", 0, 0},
        {"/a", BRG_ABSENT, NULL, 0, EIO},
        {"/a", BRG_FILE, NULL, BRG_LISTED, 0},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        err.text[0] = '\0';
        CHECK(last_refusal(&bad[i], 1) == -EINVAL && strstr(err.text, bad[i].path));
    }
}

static void two_answers_to_one_question_are_refused(void)
{
    char id[33];
    struct brg_image_writer *w = small_writer("bad.img", 0);
    NEED(brg_image_writer_add_answer(w, 1, "r", "n", "/a", &err) == 0);
    NEED(brg_image_writer_add_answer(w, 1, "r", "n", "/b", &err) == 0);
    CHECK(brg_image_writer_commit(w, NULL, NULL, NULL, id, &err) == -EEXIST);
    CHECK(strstr(err.text, "/a") && strstr(err.text, "/b"));
    brg_image_writer_destroy(w);
}

static int keep(void *user, const char *path, const struct brg_error *why)
{
    strcpy(user, path);
    CHECK(why->code == -ESTALE || why->code == -ENOENT);
    return 0;
}

static void change_size(const char *name)
{
    NEED(truncate(name, 11) == 0);
}

static void change_mtime(const char *name)
{
    const struct timespec times[2] = {{1, 0}, {1, 0}};
    NEED(utimensat(AT_FDCWD, name, times, 0) == 0);
}

static void vanish(const char *name)
{
    unlink(name);
}

static void a_source_that_changed_costs_its_content_or_the_image(void)
{
    void (*const changes[])(const char *) = {change_size, change_mtime, vanish};
    for (size_t k = 0; k < 3; k++) {
        for (int forgiving = 0; forgiving < 2; forgiving++) {
            char id[33], told[64] = "";
            make_file("changing", 10, 1);
            struct brg_image_writer *w = small_writer("lost.img", 0);
            struct brg_image_entry e = file_entry("/r/x", "changing");
            NEED(brg_image_writer_add_entry(w, &e, &err) == 0);
            changes[k]("changing");
            int rc = brg_image_writer_commit(w, NULL, forgiving ? keep : NULL, told, id, &err);
            brg_image_writer_destroy(w);
            CHECK((rc == 0) == forgiving);
            CHECK((access("lost.img", F_OK) == 0) == forgiving);
            if (!forgiving) {
                CHECK(strstr(err.text, "changing"));
                continue;
            }
            CHECK_TEXT(told, "/r/x");
            struct brg_image *i = NULL;
            NEED(brg_image_open("lost.img", &i, &err) == 0);
            const struct brg_index *x = brg_image_index(i);
            uint32_t n = brg_index_find(x, "/r/x", 4);
            CHECK(n != BRG_NONE && brg_entries(x)[n].content == BRG_NONE);
            CHECK(brg_image_verify(i, NULL, NULL, &err) == 0);
            brg_image_close(i);
            unlink("lost.img");
        }
    }
    unlink("changing");
}

/* Called between blocks: the large source changes while it is read. */
static int grow_in_the_middle(void *user, uint64_t done, uint64_t total)
{
    (void)user;
    if (done > 0 && done < total)
        change_mtime("large");
    return 0;
}

static void a_large_source_that_changes_while_it_is_read_leaves_a_good_image(void)
{
    char id[33], told[64] = "";
    struct brg_image_writer *w = small_writer("lost.img", 0);
    struct brg_image_entry e = file_entry("/r/x", "large");
    NEED(brg_image_writer_add_entry(w, &e, &err) == 0);
    CHECK(brg_image_writer_commit(w, grow_in_the_middle, keep, told, id, &err) == 0);
    brg_image_writer_destroy(w);
    CHECK_TEXT(told, "/r/x");
    struct brg_image *i = NULL;
    NEED(brg_image_open("lost.img", &i, &err) == 0);
    CHECK(brg_image_verify(i, NULL, NULL, &err) == 0);
    brg_image_close(i);
    unlink("lost.img");
}

static int stop_at_once(void *user, uint64_t done, uint64_t total)
{
    (void)user, (void)done, (void)total;
    return 1;
}

static void a_commit_that_is_stopped_leaves_nothing(void)
{
    char id[33];
    struct brg_image_writer *w = small_writer("stop.img", 0);
    struct brg_image_entry e = file_entry("/r/x", "large");
    NEED(brg_image_writer_add_entry(w, &e, &err) == 0);
    CHECK(brg_image_writer_commit(w, stop_at_once, keep, NULL, id, &err) == -ECANCELED);
    brg_image_writer_destroy(w);
    CHECK(access("stop.img", F_OK) != 0 && temporaries() == 0);
}

/* A file-size limit stands for a full disk: pwrite fails in the middle with EFBIG. */
static void a_full_disk_leaves_the_old_image_and_says_where(void)
{
    char id[33];
    struct rlimit old, low = {100 << 10, 100 << 10};
    small_image("full.img", "/sw", everything, N_EVERYTHING);
    struct brg_image_writer *w = small_writer("full.img", 0);
    struct brg_image_entry e = file_entry("/r/x", "large");
    NEED(brg_image_writer_add_entry(w, &e, &err) == 0);
    NEED(getrlimit(RLIMIT_FSIZE, &old) == 0);
    low.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    NEED(setrlimit(RLIMIT_FSIZE, &low) == 0);
    CHECK(brg_image_writer_commit(w, NULL, keep, NULL, id, &err) == -EFBIG);
    NEED(setrlimit(RLIMIT_FSIZE, &old) == 0);
    CHECK(strstr(err.text, "full.img") && strstr(err.text, "offset"));
    brg_image_writer_destroy(w);
    struct brg_image *i = NULL;
    CHECK(brg_image_open("full.img", &i, &err) == 0);
    brg_image_close(i);
    CHECK(temporaries() == 0);
    unlink("full.img");
}

static void a_folder_that_is_not_there_is_found_at_once(void)
{
    struct brg_image_writer *w = NULL;
    CHECK(brg_image_writer_create("none/x.img", NULL, &w, &err) == -ENOENT);
    CHECK(strstr(err.text, "none/x.img") && !w);
    struct brg_image_options odd = {4097, 3, 0}, high = {0, 23, 0};
    CHECK(brg_image_writer_create("x.img", &odd, &w, &err) == -EINVAL);
    CHECK(brg_image_writer_create("x.img", &high, &w, &err) == -EINVAL);
}

static void an_image_of_nothing_is_an_image(void)
{
    char id[33];
    struct brg_image_writer *w = small_writer("empty.img", 0);
    CHECK(brg_image_writer_commit(w, NULL, NULL, NULL, id, &err) == 0);
    brg_image_writer_destroy(w);
    struct brg_image *i = NULL;
    struct brg_image_info info;
    CHECK(brg_image_open("empty.img", &i, &err) == 0);
    CHECK(brg_image_verify(i, NULL, NULL, &err) == 0);
    brg_image_get_info(i, &info);
    CHECK_TEXT(info.id, id);
    CHECK(info.n_entries == 0 && info.n_blocks == 0 && info.raw_bytes == 0);
    brg_image_close(i);
    unlink("empty.img");
}

int main(void)
{
    make_file("small", 70000, 1);
    make_file("twin", 70000, 1);
    make_file("large", (5 << 20) + 3, 2);
    make_file("large2", (5 << 20) + 3, 2);
    make_file("other", 70000, 3);
    RUN(the_same_input_gives_the_same_bytes);
    RUN(entries_that_contradict_each_other_are_refused);
    RUN(an_entry_that_cannot_be_is_refused_when_it_is_added);
    RUN(two_answers_to_one_question_are_refused);
    RUN(a_source_that_changed_costs_its_content_or_the_image);
    RUN(a_commit_that_is_stopped_leaves_nothing);
    RUN(a_full_disk_leaves_the_old_image_and_says_where);
    RUN(a_large_source_that_changes_while_it_is_read_leaves_a_good_image);
    RUN(a_folder_that_is_not_there_is_found_at_once);
    RUN(an_image_of_nothing_is_an_image);
    CHECK(temporaries() == 0);
    const char *made[] = {"small", "twin", "large", "large2", "other"};
    for (int i = 0; i < 5; i++)
        unlink(made[i]);
    return failed_checks != 0;
}
