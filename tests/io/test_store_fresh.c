/* Rank 0 writes a new file through a copy of the descriptor that it was made with, until it has let
 * go of it: what other nodes wrote, only who opens it anew is sure to see. Copies of a descriptor
 * share its position, which tells them from others. */
#include "claim.h"
#include "store/store_inside.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MARK 7

static char path[] = "/tmp/brigade-test-XXXXXX";
static struct store_token token;

static struct io_store *of_rank(uint32_t rank)
{
    struct io_hints hints;
    struct io_store *store;
    hints_default(&hints);
    hints.sync = hints.checksums = 0;
    token = (struct store_token){
        .flags = BRG_WRITE | BRG_CREATE, .block_bytes = 64u << 10, .file = -1, .lock = -1};
    snprintf(token.path, sizeof token.path, "%s.under-another-name", path);
    snprintf(token.temporary, sizeof token.temporary, "%s", path);
    token.lock = open(path, O_RDWR | O_CLOEXEC);
    lseek(token.lock, MARK, SEEK_SET);
    CHECK(store_open(&token, &hints, rank, NULL, &store, NULL) == 0, "no memory");
    return store;
}

static int is_a_copy(struct io_store *s)
{
    struct brg_error err;
    CHECK(store_write(s, "bytes", 5, 0, &err) == 0, "%s", err.text);
    return lseek(store_descriptor(s), 0, SEEK_CUR) == MARK;
}

static void rank_0_writes_through_a_copy_and_no_other_rank_does(void)
{
    struct io_store *s = of_rank(0), *other;
    CHECK(is_a_copy(s), "it was opened again");
    store_close(s);
    other = of_rank(1);
    CHECK(!is_a_copy(other), "a number of rank 0's means nothing here");
    store_close(other);
    close(token.lock);
}

static void once_it_was_let_go_of_it_is_opened_anew(void)
{
    struct io_store *s = of_rank(0);
    CHECK(is_a_copy(s), "it was opened again");
    CHECK(store_show(s, NULL) == 0, "it cannot be closed");
    CHECK(!is_a_copy(s), "what others wrote meanwhile may not be seen");
    store_close(s);
}

static void also_where_rank_0_had_written_nothing_yet(void)
{
    struct io_store *s = of_rank(0);
    CHECK(store_show(s, NULL) == 0, "it cannot be closed");
    CHECK(!is_a_copy(s), "what others wrote meanwhile may not be seen");
    store_close(s);
}

int main(void)
{
    close(mkstemp(path));
    rank_0_writes_through_a_copy_and_no_other_rank_does();
    once_it_was_let_go_of_it_is_opened_anew();
    also_where_rank_0_had_written_nothing_yet();
    unlink(path);
    return failures != 0;
}
