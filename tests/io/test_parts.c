/* Logs of parts against a byte-by-byte reference, with room for few extents at a time. */
#include "claim.h"
#include "store/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE 5000
#define RANKS 5
#define BLOCK 64

static uint32_t state = 1;

static uint32_t chance(uint32_t n)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % n;
}

static char reference[SIZE];
static uint64_t winner[SIZE]; /* call * RANKS + rank + 1 of each byte */

static void write_call(struct parts_writer *writers, uint64_t call, char *buf)
{
    uint64_t failed;
    for (uint32_t turn = 0; turn < 2 * RANKS; turn++) {
        uint32_t rank = turn / 2, at = chance(SIZE), n = 1 + chance(chance(2) ? 20 : 900);
        n = n < SIZE - at ? n : SIZE - at;
        for (uint32_t i = 0; i < n; i++)
            buf[i] = (char)chance(256);
        CHECK(parts_writer_put(&writers[rank], buf, n, at, call, &failed) == 0, "random state %llu",
              (unsigned long long)state);
        for (uint32_t i = 0; i < n; i++)
            if (call * RANKS + rank + 1 >= winner[at + i]) {
                winner[at + i] = call * RANKS + rank + 1;
                reference[at + i] = buf[i];
            }
    }
}

static void make(const char *folder, const char *index, uint64_t calls, size_t memory)
{
    struct parts_writer writers[RANKS];
    struct parts_head head = {.size = SIZE, .block_bytes = BLOCK};
    char buf[SIZE];
    memset(reference, 0, sizeof reference);
    memset(winner, 0, sizeof winner);
    CHECK(mkdir(folder, 0700) == 0, "random state %llu", (unsigned long long)state);
    for (uint32_t i = 0; i < RANKS; i++)
        CHECK(parts_writer_open(&writers[i], folder, 2 * i, 0600, BLOCK) == 0, "random state %llu",
              (unsigned long long)state);
    for (uint64_t call = 0; call < calls; call++)
        write_call(writers, call, buf);
    for (uint32_t i = 0; i < RANKS; i++) {
        CHECK(parts_writer_flush(&writers[i], 0) == 0, "random state %llu",
              (unsigned long long)state);
        parts_writer_close(&writers[i]);
    }
    snprintf(head.folder, sizeof head.folder, "%s", strrchr(folder, '/') + 1);
    int fd = open(index, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0 && parts_make_index(folder, fd, &head, memory) == 0, "random state %llu",
          (unsigned long long)state);
    close(fd);
}

static void compare(const char *index)
{
    static struct parts_reader reader;
    struct brg_error err;
    char buf[SIZE + 10];
    size_t got;
    CHECK(parts_reader_open(&reader, index, &err) == 0, "random state %llu",
          (unsigned long long)state);
    for (int i = 0; i < 300; i++) {
        uint32_t at = chance(SIZE), n = chance(700);
        CHECK(parts_read(&reader, buf, n, at, i % 2, &got, &err) == 0, "random state %llu",
              (unsigned long long)state);
        CHECK(got == (n < SIZE - at ? n : SIZE - at), "random state %llu",
              (unsigned long long)state);
        CHECK(memcmp(buf, reference + at, got) == 0, "random state %llu",
              (unsigned long long)state);
    }
    CHECK(parts_read(&reader, buf, sizeof buf, 0, 1, &got, &err) == 0 && got == SIZE,
          "random state %llu", (unsigned long long)state);
    CHECK(memcmp(buf, reference, SIZE) == 0, "random state %llu", (unsigned long long)state);
    CHECK(parts_read(&reader, buf, 1, SIZE, 1, &got, &err) == 0 && got == 0, "random state %llu",
          (unsigned long long)state);
    parts_reader_close(&reader);
}

/* Pieces are held back, and still the byte that has no room is told. */
static void a_full_disk_names_the_byte(const char *folder, uint32_t bytes, uint64_t room)
{
    static const char buf[PARTS_HELD];
    struct parts_writer w;
    uint64_t failed = 0;
    struct rlimit old, limit;
    int rc = 0;
    getrlimit(RLIMIT_FSIZE, &old);
    limit = (struct rlimit){room, old.rlim_max};
    CHECK(mkdir(folder, 0700) == 0 && parts_writer_open(&w, folder, 0, 0600, BLOCK) == 0, "open");
    setrlimit(RLIMIT_FSIZE, &limit);
    for (uint64_t i = 0; !rc && i * bytes <= room; i++)
        rc = parts_writer_put(&w, buf, bytes, 1000 * i + 7, 1, &failed);
    rc = rc ? rc : parts_writer_end_call(&w, &failed);
    setrlimit(RLIMIT_FSIZE, &old);
    CHECK(rc == -EFBIG && failed == room / bytes * 1000 + 7 + room % bytes,
          "%d at byte %llu: pieces of %u, room for %llu", rc, (unsigned long long)failed, bytes,
          (unsigned long long)room);
    parts_writer_close(&w);
    parts_remove(folder);
}

int main(void)
{
    char base[] = "/tmp/brigade-test-XXXXXX", folder[64], index[64];
    static const uint64_t calls[] = {0, 1, 3, 40, 400};
    static const size_t memory[] = {1, 8 << 10, 4 << 20};
    CHECK(mkdtemp(base), "random state %llu", (unsigned long long)state);
    snprintf(folder, sizeof folder, "%s/parts", base);
    snprintf(index, sizeof index, "%s/index", base);
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++)
        for (size_t m = 0; m < sizeof memory / sizeof *memory; m++) {
            make(folder, index, calls[c], memory[m]);
            compare(index);
            parts_remove(folder);
        }
    a_full_disk_names_the_byte(folder, 36, 1000);
    a_full_disk_names_the_byte(folder, 900, 200000);
    a_full_disk_names_the_byte(folder, PARTS_HELD, 500000);
    CHECK(unlink(index) == 0 && rmdir(base) == 0, "random state %llu",
          (unsigned long long)state); /* nothing else was left */
    return failures != 0;
}
