/* Random collective writes and reads by put and get, against what one process would have made.
 *
 *   onesided BACK-END FOLDER HINTS WINDOW SEED CASES MOST
 *
 * A case begins with a file of some random bytes, which calls then write over, in place: pieces of
 * each rank are contiguous, strided, anywhere, blocks of an array, or none; they may overlap, as
 * each byte's value follows from its place. What no rank wrote must be as it was; reads go past the
 * end. Prints "ok" and what it ran on. A failure to write or to read is printed by each rank, and
 * ends the cases. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/io.h"
#include "claim.h"
#include "group.h"
#include "move/onesided.h"
#include "world/fault.h"

enum {
    MOST_PIECES = 2000
};

static uint64_t state;

static uint64_t below(uint64_t n)
{
    state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = (state ^ (state >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    return n ? z % n : 0;
}

static char byte_of(uint64_t key, uint64_t offset)
{
    return (char)((key + offset * 0x9e3779b97f4a7c15u) >> 57);
}

struct ask {
    size_t n;
    brg_piece pieces[MOST_PIECES];
    uint64_t bytes;
    struct io_request request;
};

static void add(struct ask *ask, uint64_t offset, uint64_t bytes, uint64_t most)
{
    if (offset >= most || ask->n == MOST_PIECES)
        return;
    bytes = bytes < most - offset ? bytes : most - offset;
    ask->pieces[ask->n++] = (brg_piece){.offset = offset, .bytes = bytes};
    ask->bytes += bytes;
}

/* What `rank` of `size` asks, from the key alone. */
static void draw(struct ask *ask, uint64_t key, uint32_t rank, uint32_t size, uint64_t most)
{
    state = key;
    uint64_t kind = below(9), piece = 1 + below(below(2) ? 64 : most / 8 + 1);
    uint64_t gap = below(3) ? 0 : below(2 * piece), block = most / size, low = below(most);
    state = key ^ (uint64_t)(rank + 1) * UINT64_C(0xd1342543de82ef95);
    if (kind == 8)
        kind = below(6); /* each its own */
    ask->n = ask->bytes = 0;
    if (kind == 0) /* contiguous blocks, one after another */
        add(ask, block * rank, block, most);
    else if (kind == 1 || kind == 2) /* strided, ranks side by side */
        for (uint64_t at = low * (kind - 1) + piece * rank; at < most && ask->n < MOST_PIECES;
             at += piece * size + gap)
            add(ask, at, piece, most);
    else if (kind == 3) /* anywhere, in any order */
        for (uint64_t n = below(60); n; n--)
            add(ask, below(most), below(piece), most);
    else if (kind == 4 && below(2)) /* a few have much */
        add(ask, below(most / 2 + 1), most / 2, most);
    else if (kind == 6 && rank < 2) /* as many bytes as a window has, but half of it twice */
        for (uint64_t at = 0; at < most && ask->n < MOST_PIECES; at += 4096)
            add(ask, at, 2048, most);
    else if (kind == 7) /* crumbs, no two distances alike: more to say where than what */
        for (uint64_t at = low / 2; at < most && ask->n < MOST_PIECES; at += 30 + below(24))
            add(ask, at, 1 + below(8), most);
    else if (kind == 5 && rank == size - 1) /* little, far away */
        add(ask, most - 1 - below(most / 4 + 1), 1 + below(9), most);
}

static int stopped;

static void stop(const char *what, const struct brg_error *err)
{
    const char *name = strrchr(err->path, '/');
    printf("%s: %d rank %d offset %lld %s\n", what, err->code, err->rank, (long long)err->offset,
           name ? name : err->text);
    fflush(stdout);
    stopped = 1;
}

struct file {
    struct io_hints hints;
    struct store_token token;
    struct io_store *store;
    struct drain *drain;
    struct hull behind;
};

static void file_open(struct file *f, struct pgas *p, const char *path, const char *text)
{
    struct brg_error err = {0};
    f->behind = (struct hull){0, 0};
    hints_default(&f->hints);
    if (hints_parse(&f->hints, "sync=no:update=in-place:checksums=no", &err) ||
        hints_parse(&f->hints, text, &err))
        group_die("hints", &err);
    io_fault_start(p->rank);
    if (p->rank == 0 && store_prepare(path, BRG_WRITE, &f->hints, NULL, &f->token, &err))
        group_die("prepare", &err);
    if (p->broadcast(p, &f->token, sizeof f->token, 0, &err) ||
        store_open(&f->token, &f->hints, p->rank, NULL, &f->store, &err) ||
        drain_open(f->store, &f->hints, &f->drain, &err))
        group_die("open", &err);
}

static void file_close(struct file *f)
{
    drain_close(f->drain);
    store_close(f->store);
}

static int make_file(const char *path, const char *bytes, uint64_t n)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    int rc = fd < 0 ? -errno : brg_io_pwrite_by(pwrite, fd, bytes, n, 0, NULL);
    close(fd);
    return rc;
}

static struct onesided_call call_of(struct onesided *o, struct file *f, uint64_t size,
                                    struct ask *ask, char *memory)
{
    struct brg_error err = {0};
    if (request_of_pieces(&ask->request, ask->pieces, ask->n, memory, &err)) {
        printf("FAIL request: %s\n", err.text);
        exit(1);
    }
    return (struct onesided_call){.o = o,
                                  .hints = &f->hints,
                                  .place = {.stripe_bytes = f->token.stripe_bytes},
                                  .size = size,
                                  .behind = &f->behind,
                                  .store = f->store,
                                  .drain = f->drain,
                                  .request = &ask->request};
}

/* Returns the size after it. */
static uint64_t write_once(struct pgas *p, struct onesided *o, struct file *f, uint64_t key,
                           uint64_t limit, uint64_t size, char *expected, char *memory)
{
    static struct ask ask;
    struct brg_error err = {0};
    uint64_t told = 0, after = size;
    for (uint32_t rank = 0; rank < p->size; rank++) {
        draw(&ask, key, rank, p->size, limit);
        for (size_t i = 0; i < ask.n; i++) {
            uint64_t end = ask.pieces[i].offset + ask.pieces[i].bytes;
            for (uint64_t at = ask.pieces[i].offset; at < end; at++)
                expected[at] = byte_of(key, at);
            after = ask.pieces[i].bytes && end > after ? end : after;
        }
    }
    draw(&ask, key, p->rank, p->size, limit);
    char *to = memory;
    for (size_t i = 0; i < ask.n; i++)
        for (uint64_t k = 0; k < ask.pieces[i].bytes; k++)
            *to++ = byte_of(key, ask.pieces[i].offset + k);
    struct onesided_call call = call_of(o, f, size, &ask, memory);
    if (onesided_write(&call, &told, &err))
        stop("write", &err);
    CHECK(stopped || told == after, "size %lu, not %lu", (unsigned long)told, (unsigned long)after);
    request_destroy(&ask.request);
    return after;
}

static void read_once(struct pgas *p, struct onesided *o, struct file *f, uint64_t key,
                      uint64_t limit, uint64_t size, const char *expected, char *memory)
{
    static struct ask ask;
    struct brg_error err = {0};
    size_t bad = 0;
    draw(&ask, key, p->rank, p->size, limit);
    memset(memory, 0x55, ask.bytes);
    struct onesided_call call = call_of(o, f, size, &ask, memory);
    uint64_t told = 0;
    if (onesided_read(&call, &told, &err))
        stop("read", &err);
    CHECK(stopped || told == size, "size %lu, not %lu", (unsigned long)told, (unsigned long)size);
    request_repeat(&ask.request);
    request_destroy(&ask.request);
    for (size_t i = 0; i < ask.n; i++)
        for (uint64_t k = 0; k < ask.pieces[i].bytes; k++, memory++) {
            uint64_t at = ask.pieces[i].offset + k;
            bad += *memory != (at < size ? expected[at] : 0x55);
        }
    CHECK(stopped || bad == 0, "%zu of %lu bytes read wrongly", bad, (unsigned long)ask.bytes);
}

static void compare(const char *path, const char *expected, uint64_t size, char *memory,
                    uint64_t room)
{
    int fd = open(path, O_RDONLY);
    ssize_t n = brg_io_pread(fd, memory, room, 0);
    uint64_t at = 0;
    close(fd);
    while (n == (ssize_t)size && at < size && memory[at] == expected[at])
        at++;
    CHECK(n == (ssize_t)size && at == size, "%zd bytes of %lu, byte %lu is wrong", n,
          (unsigned long)size, (unsigned long)at);
}

int main(int argc, char **argv)
{
    struct test_group g;
    struct onesided *o;
    struct brg_error err = {0};
    group_open(&g, argv + 1, 1 << 20);
    char **words = argv + 1 + g.used, path[4096];
    struct pgas *p = g.pgas;
    if (argc < 8 || onesided_open(p, strtoull(words[2], NULL, 10), &o, &err))
        group_die("windows", &err);
    uint64_t seed = strtoull(words[3], NULL, 10), most = strtoull(words[5], NULL, 10);
    int cases = atoi(words[4]);
    char *expected = malloc(most), *memory = malloc(most * 8);
    snprintf(path, sizeof path, "%s/file", words[0]);
    for (int c = 0, all = 0; c < cases && !all && !stopped; c++) {
        uint64_t key = seed * 1000003 + (uint64_t)c * 7919;
        struct file f;
        state = key;
        uint64_t limit = 8 + below(below(2) ? 5000 : most - 8);
        uint64_t size = below(3) ? below(limit) : 0, calls = 1 + below(3);
        memset(expected, 0, most);
        for (uint64_t i = 0; i < size; i++)
            expected[i] = byte_of(key, i * 3);
        CHECK(p->rank || make_file(path, expected, size) == 0, "cannot make the file");
        file_open(&f, p, path, words[1]);
        for (uint64_t k = 0; k < calls && !stopped; k++)
            size = write_once(p, o, &f, key + k * 101 + 1, limit, size, expected, memory);
        if (p->rank == 0 && !stopped)
            compare(path, expected, size, memory, most * 8);
        for (uint64_t k = 0; k < 2 && !stopped; k++)
            read_once(p, o, &f, key + k * 103 + 50, limit, size, expected, memory);
        file_close(&f);
        if (failures)
            printf("case %d of seed %lu\n", c, (unsigned long)seed);
        int64_t sum = failures;
        p->reduce(p, PGAS_SUM, &sum, 1, &err);
        all = sum != 0;
    }
    onesided_close(o);
    group_end(&g, failures);
}
