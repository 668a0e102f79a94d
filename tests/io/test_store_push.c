/* What is written slowly is sent on as slowly: piece by piece where the kernel can be told, and by
 * a sync of each where a process behind FUSE is all that knows. System calls are this test's. */
#include "claim.h"
#include "store/store_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#define FUSE_MAGIC 0x65735546
#define FD 77
#define WAITS (SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER)
#define PIECE 4096u

static long magic;
static int fails, n_asked, n_synced, n_calls;
static struct {
    int fd;
    uint64_t at, bytes;
    unsigned flags;
} calls[64];

int fstatfs(int fd, struct statfs *about)
{
    CHECK(fd == FD, "asked about %d", fd);
    memset(about, 0, sizeof *about);
    about->f_type = magic;
    n_asked++;
    return 0;
}
static int outcome(void)
{
    errno = fails;
    return fails ? -1 : 0;
}
int sync_file_range(int fd, off64_t at, off64_t bytes, unsigned flags)
{
    calls[n_calls].fd = fd;
    calls[n_calls].at = (uint64_t)at;
    calls[n_calls].bytes = (uint64_t)bytes;
    calls[n_calls++].flags = flags;
    return outcome();
}
int fdatasync(int fd)
{
    CHECK(fd == FD, "synced %d", fd);
    n_synced++;
    return outcome();
}

static struct io_store *on(long file_system, int sync)
{
    static struct io_store store;
    magic = file_system;
    fails = n_asked = n_synced = n_calls = 0;
    memset(&store, 0, sizeof store);
    store.fd = FD;
    store.sync = sync;
    strcpy(store.token.path, "/somewhere/file");
    return &store;
}
static int push(struct io_store *s, uint64_t number, struct brg_error *err)
{
    return store_push(s, PIECE, number * PIECE, err);
}

static void on_fuse_every_piece_is_synced_before_the_next(void)
{
    struct io_store *s = on(FUSE_MAGIC, 1);
    for (int i = 0; i < 10; i++) {
        CHECK(push(s, (uint64_t)i, NULL) == 0, "piece %d", i);
        CHECK(n_synced == i + 1, "%d syncs after %d pieces", n_synced, i + 1);
    }
    CHECK(n_calls == 0, "the kernel has nothing that it could be told to send");
    CHECK(n_asked == 1, "asked %d times where the file lies", n_asked);
}

static void elsewhere_four_pieces_are_left_to_the_kernel(void)
{
    struct io_store *s = on(0xef53, 1);
    for (unsigned i = 0; i < 10; i++) {
        int before = n_calls;
        CHECK(push(s, i, NULL) == 0, "piece %u", i);
        int waits = i >= STORE_PUSHES;
        CHECK(n_calls - before == 1 + waits, "piece %u: %d calls", i, n_calls - before);
        CHECK(calls[n_calls - 1].flags == SYNC_FILE_RANGE_WRITE && calls[n_calls - 1].fd == FD &&
                  calls[n_calls - 1].at == i * PIECE && calls[n_calls - 1].bytes == PIECE,
              "piece %u is sent on at once, and not waited for", i);
        CHECK(!waits ||
                  (calls[before].flags == WAITS && calls[before].at == (i - STORE_PUSHES) * PIECE),
              "piece %u: first the one before four others is waited for", i);
    }
    CHECK(n_synced == 0 && n_asked == 1, "%d syncs, asked %d times", n_synced, n_asked);
}

static void where_bytes_lie_in_a_part_it_is_the_part_that_is_sent(void)
{
    static struct parts_writer part;
    struct io_store *s = on(0xef53, 1);
    s->token.layout = IO_PARTS;
    s->fd = -1;
    s->part = &part;
    part.data = FD;
    part.at = 3 * PIECE;
    CHECK(push(s, 1000, NULL) == 0, "no failure");
    CHECK(n_calls == 1 && calls[0].fd == FD && calls[0].at == 2 * PIECE && calls[0].bytes == PIECE,
          "%d calls, at %llu", n_calls, (unsigned long long)calls[0].at);
    s->push_kind = 0;
    magic = FUSE_MAGIC;
    CHECK(push(s, 1001, NULL) == 0 && n_synced == 1, "%d syncs", n_synced);
}

static void what_is_lost_is_told_and_what_is_not_known_is_not(void)
{
    static const struct {
        long file_system;
        int fails, rc;
    } cases[] = {{FUSE_MAGIC, EIO, -EIO},   {FUSE_MAGIC, ENOSPC, -ENOSPC}, {0xef53, EIO, -EIO},
                 {0xef53, EDQUOT, -EDQUOT}, {0xef53, ENOSYS, 0},           {0xef53, ESPIPE, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct io_store *s = on(cases[i].file_system, 1);
        struct brg_error err = {.rank = -1, .offset = -1};
        fails = cases[i].fails;
        CHECK(push(s, 5, &err) == cases[i].rc, "case %zu", i);
        CHECK(err.code == cases[i].rc, "case %zu: %d", i, err.code);
        CHECK(!cases[i].rc || (err.offset == 5 * PIECE && strstr(err.text, "/somewhere/file")),
              "case %zu: %lld, %s", i, (long long)err.offset, err.text);
    }
}

static void without_sync_nothing_is_sent(void)
{
    push(on(FUSE_MAGIC, 0), 0, NULL);
    push(on(0xef53, 0), 0, NULL);
    CHECK(n_calls + n_synced + n_asked == 0, "%d, %d, %d", n_calls, n_synced, n_asked);
}

int main(void)
{
    on_fuse_every_piece_is_synced_before_the_next();
    elsewhere_four_pieces_are_left_to_the_kernel();
    where_bytes_lie_in_a_part_it_is_the_part_that_is_sent();
    what_is_lost_is_told_and_what_is_not_known_is_not();
    without_sync_nothing_is_sent();
    return failures != 0;
}
