/* One rank's pieces, moved by itself: what is asked of the system, and that every byte arrives. */
#include "claim.h"
#include "move/alone.h"
#include "store/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    FILE_BYTES = 4 << 20,
    MOST = 1000
};

static char path[96], there[FILE_BYTES], memory[FILE_BYTES], now[FILE_BYTES];
static struct brg_error err;

/* In libc's place. */
static int where; /* what a look finds: bytes, or -errno */
static unsigned looks, asked, pages_asked, writes, reads;
static uint64_t looked_at, asked_until;

ssize_t preadv64v2(int fd, const struct iovec *parts, int n, off_t offset, int flags)
{
    (void)fd;
    looks++;
    looked_at = (uint64_t)offset;
    CHECK(n == 1 && parts->iov_len == 1 && flags == RWF_NOWAIT, "a look at a byte");
    errno = -where;
    return where < 0 ? -1 : where;
}

int posix_fadvise64(int fd, off_t offset, off_t bytes, int advice)
{
    (void)fd;
    CHECK(advice == POSIX_FADV_WILLNEED, "%d", advice);
    asked++;
    pages_asked += (unsigned)((offset + bytes - 1) / 4096 - offset / 4096 + 1);
    asked_until = (uint64_t)(offset + bytes);
    return 0;
}

ssize_t pwrite64(int fd, const void *buf, size_t n, off_t offset)
{
    writes++;
    return syscall(SYS_pwrite64, fd, buf, n, offset);
}

static unsigned takes_us; /* a read */

ssize_t pread64(int fd, void *buf, size_t n, off_t offset)
{
    reads++;
    if (takes_us)
        usleep(takes_us);
    return syscall(SYS_pread64, fd, buf, n, offset);
}

static unsigned char in_memory;
static int turns; /* the disk */

int place_one_stream(uint64_t device)
{
    (void)device;
    return turns;
}

int mincore(void *from, size_t bytes, unsigned char *pages)
{
    CHECK(from != MAP_FAILED && bytes <= (size_t)sysconf(_SC_PAGESIZE), "one page");
    *pages = in_memory;
    return 0;
}

static struct io_store *opened_on(int one_stream)
{
    struct io_hints hints;
    struct store_token token;
    struct io_store *store = NULL;
    hints_default(&hints);
    CHECK(!store_prepare(path, BRG_READ | BRG_WRITE | STORE_IN_PLACE, &hints, NULL, &token, &err),
          "%s", err.text);
    token.one_stream = one_stream;
    CHECK(!store_open(&token, &hints, 0, NULL, &store, &err) && !store_need_file(store, &err), "%s",
          err.text);
    looks = asked = pages_asked = writes = reads = 0;
    return store;
}

static struct io_store *opened(void)
{
    return opened_on(0);
}

static void fill(void)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    for (size_t i = 0; i < FILE_BYTES; i++)
        there[i] = (char)(i * 7 + i / 4096);
    CHECK(write(fd, there, FILE_BYTES) == FILE_BYTES, "no room");
    close(fd);
}

/* What is in the file is what should be there. */
static void check_file(void)
{
    int fd = open(path, O_RDONLY);
    CHECK(syscall(SYS_pread64, fd, now, FILE_BYTES, 0) == FILE_BYTES, "too short");
    CHECK(!memcmp(now, there, FILE_BYTES), "other bytes");
    close(fd);
}

static void pieces_of(struct io_request *request, size_t n, uint64_t bytes, uint64_t pitch,
                      uint64_t first)
{
    static brg_piece pieces[MOST];
    for (size_t i = 0; i < n; i++)
        pieces[i] = (brg_piece){.offset = first + i * pitch, .bytes = bytes};
    CHECK(!request_of_pieces(request, pieces, n, memory, &err), "%s", err.text);
}

/* n pieces are written and read: each arrives. */
static void there_and_back(size_t n, uint64_t bytes, uint64_t pitch, uint64_t first,
                           enum store_where told)
{
    struct io_request request;
    struct io_store *store = opened();
    uint64_t got = 0;
    pieces_of(&request, n, bytes, pitch, first);
    for (size_t i = 0; i < n * bytes; i++)
        memory[i] = (char)rand();
    for (size_t i = 0; i < n; i++)
        memcpy(there + first + i * pitch, memory + i * bytes, bytes);
    CHECK(!alone_write(store, &request, told, &err), "%s", err.text);
    check_file();
    memset(memory, 0, n * bytes);
    CHECK(!alone_read(store, &request, told, &got, &err) && got == n * bytes, "%s", err.text);
    for (size_t i = 0; i < n; i++)
        CHECK(!memcmp(memory + i * bytes, there + first + i * pitch, bytes), "piece %zu", i);
    request_destroy(&request);
    store_close(store);
}

static void pieces_in_memory_are_moved_one_by_one(void)
{
    there_and_back(100, 20, 10000, 33, STORE_IN_MEMORY);
    CHECK(writes == 100 && reads == 100 && asked == 0, "%u, %u, %u", writes, reads, asked);
}

static void pieces_that_meet_are_written_as_one(void)
{
    there_and_back(300, 20, 20, 33, STORE_IN_MEMORY);
    CHECK(writes == 1 && reads == 1, "%u, %u", writes, reads);
    there_and_back(MOST, 700, 700, 1, STORE_IN_MEMORY); /* more than the room for them */
    CHECK(writes == 3 && reads == 3, "%u, %u", writes, reads);
    there_and_back(20, 40000, 40000, 5, STORE_IN_MEMORY); /* long ones from where they are */
    CHECK(writes == 20 && reads == 20, "%u, %u", writes, reads);
}

static void small_gaps_are_read_with_what_lies_around(void)
{
    there_and_back(100, 20, 1000, 33, STORE_IN_MEMORY);
    CHECK(writes == 100 && reads == 1, "%u, %u", writes, reads);
}

static void what_is_on_disk_is_asked_for_before(void)
{
    there_and_back(300, 20, 10000, 33, STORE_ON_DISK);
    /* one of them lies in two pages: to write it, either is asked for by itself */
    CHECK(pages_asked == 602 && asked == 601, "%u pages, %u", pages_asked, asked);
    CHECK(writes == 300 && reads == 300, "%u, %u", writes, reads);
    there_and_back(64, 4096, 32768, 4096,
                   STORE_ON_DISK); /* whole pages need nothing to be written */
    CHECK(asked == 64 && pages_asked == 64, "%u", asked);
    there_and_back(64, 4096, 32768, 100, STORE_ON_DISK);
    CHECK(pages_asked == 4 * 64, "%u", pages_asked);
}

static void of_what_is_not_known_only_reading_asks(void)
{
    there_and_back(300, 20, 10000, 33, STORE_UNKNOWN);
    CHECK(pages_asked == 301, "%u", pages_asked);
}

/* Asking goes on while pieces are moved, as a disk has room for so many. */
static void it_is_asked_for_some_pieces_at_a_time(void)
{
    struct io_request request;
    struct io_store *store = opened();
    uint64_t got;
    pieces_of(&request, 300, 20, 10000, 33);
    request_clip(&request, UINT64_MAX);
    CHECK(!store_resize(store, 150 * 10000, &err), "%s", err.text); /* it ends after 150 */
    CHECK(!alone_read(store, &request, STORE_ON_DISK, &got, &err) && got == 150 * 20, "%s",
          err.text);
    CHECK(asked_until == 33 + 255 * 10000 + 20, "until %llu", (unsigned long long)asked_until);
    request_destroy(&request);
    store_close(store);
}

static void a_file_system_in_memory_needs_no_look(void)
{
    char kept[sizeof path];
    snprintf(kept, sizeof kept, "%s", path);
    snprintf(path, sizeof path, "/dev/shm/brigade-alone-%d", (int)getpid());
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    struct io_store *store = fd < 0 ? NULL : opened();
    where = -EOPNOTSUPP;
    CHECK(store && store_where(store, 0) == STORE_IN_MEMORY, "is /dev/shm no tmpfs?");
    if (store)
        store_close(store);
    close(fd);
    unlink(path);
    snprintf(path, sizeof path, "%s", kept);
}

static void ranks_look_at_places_of_their_own(void)
{
    static const struct {
        int found;
        enum store_where means;
    } cases[] = {{1, STORE_IN_MEMORY},
                 {0, STORE_IN_MEMORY}, /* past the end */
                 {-EAGAIN, STORE_ON_DISK},
                 {-EOPNOTSUPP, STORE_UNKNOWN},
                 {-EBADF, STORE_UNKNOWN}};
    struct io_request request;
    struct io_store *store = opened();
    pieces_of(&request, 100, 20, 10000, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        where = cases[i].found;
        enum store_where means = alone_where(store, &request, (uint32_t)i, 5);
        CHECK(means == cases[i].means, "%d is %d", where, (int)means);
        CHECK(looked_at == 100000 + i * 200000, "at %llu", (unsigned long long)looked_at);
    }
    request_destroy(&request);
    looks = 0;
    pieces_of(&request, 100, 20, 20, 0);
    CHECK(alone_where(store, &request, 0, 1) == STORE_IN_MEMORY && !looks, "one run: %u", looks);
    request_destroy(&request);
    store_close(store);
}

static void a_disk_that_is_read_in_one_stream_is_left_alone(void)
{
    struct io_store *store = opened_on(1);
    in_memory = 0;
    CHECK(store_where(store, 8191) == STORE_ON_DISK, "not there");
    CHECK(store_where(store, FILE_BYTES) == STORE_IN_MEMORY, "behind the end nobody waits");
    in_memory = 1;
    CHECK(store_where(store, 12345) == STORE_IN_MEMORY, "there");
    CHECK(looks == 0, "%u reads", looks);
    store_close(store);
}

static int one_stream(unsigned flags, int found, unsigned us)
{
    struct io_hints hints;
    struct store_token token;
    hints_default(&hints);
    where = found;
    takes_us = us;
    CHECK(!store_prepare(path, flags, &hints, NULL, &token, &err), "%s", err.text);
    store_abandon(&token);
    takes_us = 0;
    return token.one_stream;
}

static void a_disk_far_away_is_read_by_all(void)
{
    turns = 1;
    CHECK(one_stream(BRG_READ, -EAGAIN, 0), "near");
    CHECK(!one_stream(BRG_READ, -EAGAIN, 2000), "its head took long");
    CHECK(!one_stream(BRG_READ | STORE_IN_PLACE, -EAGAIN, 2000), "of another program's file");
    CHECK(one_stream(BRG_READ, 1, 2000), "the head was in memory: the process had to wait");
    CHECK(one_stream(BRG_READ | BRG_WRITE | STORE_IN_PLACE, -EAGAIN, 0), "read and written");
    CHECK(!one_stream(BRG_WRITE | STORE_IN_PLACE, -EAGAIN, 0), "not read");
    turns = 0;
    CHECK(!one_stream(BRG_READ, -EAGAIN, 0), "a disk that does not turn");
}

int main(void)
{
    char folder[] = "/var/tmp/brigade-alone-XXXXXX"; /* on a disk; /tmp may be in memory */
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof path, "%s/file", folder);
    fill();
    pieces_in_memory_are_moved_one_by_one();
    pieces_that_meet_are_written_as_one();
    small_gaps_are_read_with_what_lies_around();
    what_is_on_disk_is_asked_for_before();
    of_what_is_not_known_only_reading_asks();
    a_file_system_in_memory_needs_no_look();
    ranks_look_at_places_of_their_own();
    a_disk_that_is_read_in_one_stream_is_left_alone();
    a_disk_far_away_is_read_by_all();
    it_is_asked_for_some_pieces_at_a_time();
    unlink(path);
    rmdir(folder);
    return failures != 0;
}
