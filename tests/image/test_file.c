/* The image file: what is written is read back; what is damaged is refused with words. */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/io.h"
#include "small_image.h"

static char *bytes;
static size_t n_bytes;

static size_t load(const char *file, char **to)
{
    struct stat st;
    int fd = open(file, O_RDONLY);
    NEED(fd >= 0 && fstat(fd, &st) == 0);
    *to = malloc((size_t)st.st_size);
    NEED(*to && brg_io_pread(fd, *to, (size_t)st.st_size, 0) == st.st_size);
    close(fd);
    return (size_t)st.st_size;
}

static void store(const char *file, const void *from, size_t n)
{
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    NEED(fd >= 0 && brg_io_pwrite(fd, from, n, 0, NULL) == 0);
    close(fd);
}

/* Opens and reads everything; the error's text, "" if there is none. */
static const char *complaint(const char *file)
{
    static struct brg_error err;
    struct brg_image *i = NULL;
    err.text[0] = '\0';
    int rc = brg_image_open(file, &i, &err);
    if (rc == 0)
        rc = brg_image_verify(i, NULL, NULL, &err);
    brg_image_close(i);
    CHECK((rc == 0) == (err.text[0] == '\0'));
    CHECK(rc == 0 || err.code == rc);
    return err.text;
}

static void a_truncation_at_every_length_is_refused(void)
{
    store("cut.img", bytes, n_bytes);
    for (size_t n = n_bytes; n-- > 0;) {
        if (n >= 64 && n_bytes - n >= 64 && n % 61)
            continue;
        NEED(truncate("cut.img", (off_t)n) == 0);
        const char *text = complaint("cut.img");
        CHECK(strstr(text, "cut.img") && (strstr(text, "truncated") || strstr(text, "bytes")));
    }
    unlink("cut.img");
}

/* Zeros between the parts are the only bytes that no checksum covers. */
static int is_padding(size_t at)
{
    const struct brg_image_header *h = (const struct brg_image_header *)bytes;
    return (at >= h->index_off + h->index_bytes && at < h->table_off) ||
           (at >= h->table_off + h->n_blocks * sizeof(struct brg_block) && at < h->data_off);
}

static void a_flipped_bit_in_any_part_is_noticed(void)
{
    size_t padding = 0, others = 0;
    store("flip.img", bytes, n_bytes);
    int fd = open("flip.img", O_WRONLY);
    NEED(fd >= 0);
    for (size_t at = 0; at < n_bytes; at++) {
        if (is_padding(at) && at % 509)
            continue;
        char flipped = (char)(bytes[at] ^ (1 << at % 8));
        NEED(brg_io_pwrite(fd, &flipped, 1, at, NULL) == 0);
        const char *text = complaint("flip.img");
        NEED(brg_io_pwrite(fd, &bytes[at], 1, at, NULL) == 0);
        padding += (size_t)is_padding(at);
        others += (size_t)!is_padding(at);
        if (is_padding(at))
            CHECK_TEXT(text, "");
        else if (!strstr(text, "flip.img") || !(strstr(text, "offset") || strstr(text, "format")))
            fprintf(stderr, "byte %zu: \"%s\"\n", at, text), failed_checks++;
    }
    close(fd);
    unlink("flip.img");
    CHECK(padding > 0 && others > BRG_PAGE + 1000);
}

static void bytes_after_the_end_are_noticed(void)
{
    char *longer = malloc(n_bytes + 1);
    NEED(longer);
    memcpy(longer, bytes, n_bytes);
    longer[n_bytes] = 0;
    store("long.img", longer, n_bytes + 1);
    CHECK(strstr(complaint("long.img"), "follow its end"));
    free(longer);
    unlink("long.img");
}

static void a_newer_version_is_named(void)
{
    struct brg_image_header *h = (struct brg_image_header *)bytes;
    h->version = 2;
    store("new.img", bytes, n_bytes);
    h->version = 1;
    struct brg_image *i;
    struct brg_error err;
    CHECK(brg_image_open("new.img", &i, &err) == -EPROTONOSUPPORT);
    CHECK(strstr(err.text, "format 2") && strstr(err.text, "format 1"));
    unlink("new.img");
}

static void what_is_no_image_is_said_to_be_none(void)
{
    CHECK(strstr(complaint("/"), "no file"));
    CHECK(strstr(complaint("absent.img"), "No such file"));
    store("text.img", "hello", 5);
    CHECK(strstr(complaint("text.img"), "not a Brigade image"));
    NEED(truncate("text.img", 100000) == 0);
    CHECK(strstr(complaint("text.img"), "not a Brigade image"));
    unlink("text.img");
    NEED(mkfifo("pipe.img", 0600) == 0);
    CHECK(strstr(complaint("pipe.img"), "no file"));
    unlink("pipe.img");
}

static void a_path_that_climbs_out_is_refused_even_with_good_checksums(void)
{
    char *bad = malloc(n_bytes);
    NEED(bad);
    memcpy(bad, bytes, n_bytes);
    struct brg_index *x = (struct brg_index *)brg_head_index(bad);
    const char *why = "";
    CHECK(brg_index_check(x, x->bytes, &why) == 0);
    uint32_t e = brg_index_find(x, "/sw/lib/empty", 13);
    NEED(e != BRG_NONE);
    char *path = (char *)x + x->strings_off + brg_entries(x)[e].path.off;
    memcpy(path, "/sw/lib/../xx", 13);
    CHECK(brg_index_check(x, x->bytes, &why) == -EBADMSG);
    CHECK(strstr(why, "not canonical"));
    free(bad);
}

static void the_stager_can_take_the_file_apart_in_memory(void)
{
    struct brg_error err;
    const struct brg_image_header *h = (const struct brg_image_header *)bytes;
    NEED(brg_header_check(bytes, 0, "message", &err) == 0);
    NEED(brg_head_check(bytes, "message", &err) == 0);
    const struct brg_index *x = brg_head_index(bytes);
    const struct brg_block *blocks = brg_head_blocks(bytes);
    CHECK(h->n_blocks == (h->raw_bytes + 4095) / 4096);
    char *raw = malloc(h->raw_bytes);
    NEED(raw);
    for (uint32_t i = 0; i < h->n_blocks; i++)
        CHECK(brg_block_decode(&blocks[i], i, bytes + blocks[i].off, raw + i * (size_t)4096, NULL,
                               "message", &err) == 0);
    uint32_t e = brg_index_find(x, "/sw/big", 7);
    NEED(e != BRG_NONE);
    const struct brg_content *c = &brg_contents(x)[brg_entries(x)[e].content];
    CHECK(c->size == 3 * 4096 + 5 && raw[c->raw_off] == 'b' &&
          raw[c->raw_off + c->size - 1] == 'b');
    bytes[blocks[1].off] ^= 1;
    CHECK(brg_block_decode(&blocks[1], 1, bytes + blocks[1].off, raw, NULL, "message", &err) ==
          -EBADMSG);
    CHECK(strstr(err.text, "message") && strstr(err.text, "block 1") &&
          strstr(err.text, "checksum"));
    bytes[blocks[1].off] ^= 1;
    free(raw);
}

static void contents_are_found_by_range_and_entries_by_content(void)
{
    const struct brg_index *x = brg_head_index(bytes);
    const struct brg_content *all = brg_contents(x);
    uint64_t end = all[x->n_contents - 1].raw_off + all[x->n_contents - 1].size;
    for (uint64_t from = 0; from < end; from += 5) {
        for (uint64_t to = from + 1; to <= end; to += 997) {
            uint32_t first, past;
            brg_contents_in(x, from, to, &first, &past);
            for (uint32_t c = 0; c < x->n_contents; c++) {
                int inside = all[c].raw_off < to && all[c].raw_off + all[c].size > from;
                if (all[c].size)
                    CHECK(inside == (c >= first && c < past));
            }
        }
    }
    uint32_t first, past;
    brg_contents_in(x, 3, 3, &first, &past);
    CHECK(first == past);

    uint32_t *starts = malloc((x->n_contents + 1) * sizeof *starts);
    uint32_t *sharing = malloc(x->n_entries * sizeof *sharing);
    NEED(starts && sharing);
    brg_content_entries(x, starts, sharing);
    CHECK(starts[0] == 0);
    uint32_t seen = 0, files = 0;
    for (uint32_t c = 0; c < x->n_contents; c++)
        for (uint32_t k = starts[c]; k < starts[c + 1]; k++, seen++)
            CHECK(brg_entries(x)[sharing[k]].content == c);
    for (uint32_t e = 0; e < x->n_entries; e++)
        files += brg_entries(x)[e].content != BRG_NONE;
    CHECK(seen == files && files == 6);
    free(starts);
    free(sharing);
}

static void an_index_is_checked_where_each_field_points(void)
{
    /* Each 4-byte word of the index in turn becomes large, small and odd: no look-up on what
     * passes may leave the buffer (seen under the address sanitizer and by the fuzzer). */
    const struct brg_index *good = brg_head_index(bytes);
    size_t n = good->bytes;
    char *copy = malloc(n);
    NEED(copy);
    size_t passed = 0;
    for (size_t at = 0; at + 4 <= n; at += 4) {
        const uint32_t values[] = {0, 1, 0x7fffffff, UINT32_MAX};
        for (size_t v = 0; v < 4; v++) {
            const char *why = NULL;
            memcpy(copy, good, n);
            memcpy(copy + at, &values[v], 4);
            if (brg_index_check(copy, n, &why) != 0) {
                CHECK(why && *why);
                continue;
            }
            uint32_t e;
            int err;
            const struct brg_index *x = (const struct brg_index *)copy;
            brg_index_resolve(x, "/sw/lib64/../up/app/./x", 1, &e, &err, NULL, 0);
            brg_index_answer(x, 7, "/sw/bin/app", "libm.so");
            passed++;
        }
    }
    CHECK(passed > 0);
    free(copy);
}

int main(void)
{
    struct brg_error err;
    char id[33], big[3 * 4096 + 6];
    struct brg_image_writer *w = small_writer("file.img", 4096);
    NEED(brg_image_writer_add_root(w, "/sw", &err) == 0);
    for (size_t i = 0; i < N_EVERYTHING; i++)
        NEED(small_add(w, &everything[i], &err) == 0);
    memset(big, 'b', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    struct spec large = {"/sw/big", BRG_FILE, big, 0, 0};
    NEED(small_add(w, &large, &err) == 0);
    NEED(brg_image_writer_add_answer(w, 7, "/sw/bin/app", "libm.so", "/sw/lib64/libm.so", &err) ==
         0);
    NEED(brg_image_writer_commit(w, NULL, NULL, NULL, id, &err) == 0);
    brg_image_writer_destroy(w);
    n_bytes = load("file.img", &bytes);
    CHECK_TEXT(complaint("file.img"), "");
    RUN(a_truncation_at_every_length_is_refused);
    RUN(a_flipped_bit_in_any_part_is_noticed);
    RUN(bytes_after_the_end_are_noticed);
    RUN(a_newer_version_is_named);
    RUN(what_is_no_image_is_said_to_be_none);
    RUN(a_path_that_climbs_out_is_refused_even_with_good_checksums);
    RUN(the_stager_can_take_the_file_apart_in_memory);
    RUN(contents_are_found_by_range_and_entries_by_content);
    RUN(an_index_is_checked_where_each_field_points);
    free(bytes);
    unlink("file.img");
    return failed_checks != 0;
}
