/* Room is reserved once for what is written, where that makes writing faster, and nothing depends
 * on it. The system call is this test's. */
#include "claim.h"
#include "store/store_inside.h"
#include "store/store_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB (1u << 20)

static int fails, n_calls;
static struct {
    int fd, mode;
    uint64_t at, bytes;
} last;

int fallocate(int fd, int mode, off_t at, off_t bytes)
{
    last.fd = fd;
    last.mode = mode;
    last.at = (uint64_t)at;
    last.bytes = (uint64_t)bytes;
    n_calls++;
    errno = fails;
    return fails ? -1 : 0;
}

static char buf[4 * MIB], path[] = "/tmp/brigade-test-XXXXXX";

/* Of a file that has had `old` bytes; fresh: one that takes its place. */
static struct io_store *on(unsigned flags, uint64_t old, int fresh, int reserves)
{
    struct store_token token = {.flags = flags, .size = old, .reserves = reserves, .lock = -1};
    struct io_hints hints;
    struct io_store *store;
    hints_default(&hints);
    hints.sync = hints.checksums = 0;
    token.block_bytes = 64u << 10;
    token.file = open(path, O_RDWR);
    snprintf(token.path, sizeof token.path, "%s%s", path, fresh ? ".under-another-name" : "");
    snprintf(token.temporary, sizeof token.temporary, "%s", path);
    fails = n_calls = 0;
    CHECK(store_open(&token, &hints, 0, NULL, &store, NULL) == 0, "no memory");
    return store;
}

static int wrote(struct io_store *s, size_t bytes, uint64_t offset)
{
    struct brg_error err;
    int rc = store_write(s, buf, bytes, offset, &err);
    CHECK(rc == 0, "%s", err.text);
    return n_calls;
}

static void room_for_what_is_written_first_is_reserved_and_the_file_no_longer(void)
{
    struct io_store *s = on(BRG_WRITE | BRG_CREATE, 0, 1, 1);
    CHECK(wrote(s, 2 * MIB, 3 * MIB) == 1, "%d calls", n_calls);
    CHECK(last.fd == s->fd && last.mode == FALLOC_FL_KEEP_SIZE, "mode %d", last.mode);
    CHECK(last.at == 3 * MIB && last.bytes == 2 * MIB, "%llu bytes from %llu",
          (unsigned long long)last.bytes, (unsigned long long)last.at);
    CHECK(wrote(s, MIB, 4 * MIB) == 1, "there is room already");
    CHECK(wrote(s, 2 * MIB, 4 * MIB) == 2 && last.bytes == 2 * MIB, "not for all of that");
    CHECK(wrote(s, MIB, 6 * MIB) == 3, "what comes next");
    CHECK(wrote(s, 2 * MIB, 5 * MIB) == 3, "adjoins what there was");
    store_close(s);
}

static void little_is_not_worth_it(void)
{
    struct io_store *s = on(BRG_WRITE | BRG_CREATE, 0, 1, 1);
    CHECK(wrote(s, 64u << 10, 0) == 0, "%d calls", n_calls);
    store_close(s);
}

static void what_the_file_has_had_needs_no_room(void)
{
    struct io_store *s = on(BRG_WRITE | BRG_READ | STORE_IN_PLACE, 8 * MIB, 0, 1);
    CHECK(wrote(s, MIB, 7 * MIB) == 0, "written again");
    CHECK(wrote(s, MIB, 8 * MIB) == 1, "behind it");
    store_close(s);
    s = on(BRG_WRITE | BRG_CREATE | STORE_IN_PLACE, 8 * MIB, 0, 1);
    CHECK(wrote(s, MIB, 0) == 0, "in place BRG_CREATE keeps what is there");
    store_close(s);
    s = on(BRG_WRITE | BRG_CREATE, 8 * MIB, 1, 1);
    CHECK(wrote(s, MIB, 0) == 1, "a file that takes another's place is empty");
    store_close(s);
}

static void what_cannot_be_reserved_is_written_and_nobody_asks_again(void)
{
    static const int codes[] = {EOPNOTSUPP, ENOSPC, EINTR, ENOSYS};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        struct io_store *s = on(BRG_WRITE | BRG_CREATE, 0, 1, 1);
        fails = codes[i];
        CHECK(wrote(s, MIB, 0) == 1 && wrote(s, MIB, MIB) == 1, "%s: %d calls", strerror(codes[i]),
              n_calls);
        store_close(s);
    }
}

static void where_it_does_not_make_writing_faster_there_is_none(void)
{
    struct io_store *s = on(BRG_WRITE | BRG_CREATE, 0, 1, 0);
    CHECK(wrote(s, 4 * MIB, 0) == 0, "%d calls", n_calls);
    store_close(s);
}

static void past_a_limit_the_write_says_so(void)
{
    struct io_store *s = on(BRG_WRITE | BRG_CREATE, 0, 1, 1);
    s->limit = MIB;
    CHECK(wrote(s, MIB, 0) == 1 && wrote(s, MIB, MIB) == 1, "%d calls", n_calls);
    store_close(s);
}

int main(void)
{
    close(mkstemp(path));
    room_for_what_is_written_first_is_reserved_and_the_file_no_longer();
    little_is_not_worth_it();
    what_the_file_has_had_needs_no_room();
    what_cannot_be_reserved_is_written_and_nobody_asks_again();
    where_it_does_not_make_writing_faster_there_is_none();
    past_a_limit_the_write_says_so();
    unlink(path);
    return failures != 0;
}
