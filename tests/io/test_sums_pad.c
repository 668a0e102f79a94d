/* What ranks tell each other of checksums: in memory while it fits, else in a file that is there
 * only then. */
#include "claim.h"
#include "store/sums_pad.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64], path[96], page[SUMS_PAGE];

static int is_there(void)
{
    return access(path, F_OK) == 0;
}

static uint64_t got_at(struct sums_pad *pad, uint64_t at)
{
    uint64_t word = 77;
    int rc = sums_pad_get(pad, &word, sizeof word, at);
    CHECK(rc == 0, "get at %llu: %d", (unsigned long long)at, rc);
    return word;
}

static void what_was_never_put_is_zeros(char *memory)
{
    struct sums_pad pad;
    sums_pad_open(&pad, memory, path);
    if (!memory)
        CHECK(sums_pad_make(&pad) == 0, "cannot be made");
    CHECK(got_at(&pad, 0) == 0 && got_at(&pad, 3 * SUMS_PAGE) == 0, "not zeros");
    CHECK(is_there() == !memory, "a file was made to read from it");
    sums_pad_close(&pad);
    unlink(path);
}

static void a_file_that_went_away_is_told(void)
{
    struct sums_pad pad;
    uint64_t word = 0;
    sums_pad_open(&pad, NULL, path);
    CHECK(sums_pad_put(&pad, &word, sizeof word, 0) == -ENOENT, "put");
    CHECK(sums_pad_get(&pad, &word, sizeof word, 0) == -ENOENT, "got");
}

/* `memory` NULL: all of it is in the file. */
static void what_one_rank_puts_another_gets(char *memory)
{
    struct sums_pad one, other;
    sums_pad_open(&one, memory, path);
    sums_pad_open(&other, memory, path);
    if (!memory)
        CHECK(sums_pad_make(&one) == 0 && sums_pad_make(&other) == 0, "cannot be made");
    for (uint64_t at = 0; at < 2 * SUMS_PAGE; at += SUMS_SHEET / 2) {
        uint64_t word = at + 1;
        CHECK(sums_pad_put(&one, &word, sizeof word, at) == 0, "put");
        CHECK(got_at(&other, at) == word, "%llu at %llu", (unsigned long long)got_at(&other, at),
              (unsigned long long)at);
        CHECK(is_there() == (!memory || at >= SUMS_PAGE), "at %llu the file is %s",
              (unsigned long long)at, is_there() ? "there" : "missing");
        CHECK(!memory || page[SUMS_PAGE_FILE] == is_there(), "the page does not know of the file");
    }
    sums_pad_close(&one);
    sums_pad_close(&other);
    unlink(path);
}

static void a_folder_that_takes_no_file_is_told(void)
{
    struct sums_pad pad;
    uint64_t word = 1;
    sums_pad_open(&pad, page, "/nowhere/at/all");
    CHECK(sums_pad_put(&pad, &word, sizeof word, 0) == 0, "memory needs no folder");
    CHECK(sums_pad_put(&pad, &word, sizeof word, SUMS_PAGE) == -ENOENT, "no error");
    CHECK(!page[SUMS_PAGE_FILE], "the page takes it for made");
    sums_pad_close(&pad);
}

int main(void)
{
    snprintf(folder, sizeof folder, "/tmp/brigade-pad-XXXXXX");
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof path, "%s/blocks", folder);
    what_was_never_put_is_zeros(NULL);
    what_was_never_put_is_zeros(page);
    what_one_rank_puts_another_gets(NULL);
    what_one_rank_puts_another_gets(page);
    a_file_that_went_away_is_told();
    memset(page, 0, sizeof page);
    a_folder_that_takes_no_file_is_told();
    rmdir(folder);
    return failures != 0;
}
