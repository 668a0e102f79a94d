/* Requests of random views by random datatypes of memory, against both written out byte by byte. */
#include <errno.h>

#include "claim.h"
#include "move/request.h"
#include "type/random_type.h"

#ifndef ROUNDS
#define ROUNDS 4000
#endif
#define FILE_BYTES 20000

static int round_now;
static int64_t memory_of[FILE_BYTES]; /* where in memory a byte of the file lies, from 0 on */
#define NOWHERE INT64_MIN

/* Byte `position` of copies of what is written out. */
static int64_t place_of(const struct map *m, int64_t position)
{
    int64_t size = map_size(m), copy = position / size, i = 0;
    position %= size;
    while (position >= m->elements[i].bytes)
        position -= m->elements[i++].bytes;
    return copy * map_extent(m) + m->elements[i].at + position;
}

/* Parts from `from` on, cut at multiples of `cut`, are all bytes and no others. */
static void check_parts(const struct io_request *r, const char *memory, int64_t from, int64_t cut)
{
    struct io_cursor c;
    struct io_part part;
    int64_t at = from;
    for (int64_t until = from - from % cut + cut; at < FILE_BYTES; until += cut) {
        cursor_seek(&c, r, (uint64_t)at);
        while (cursor_next(&c, (uint64_t)until, &part)) {
            int64_t offset = (int64_t)part.offset;
            CHECK(part.bytes && offset >= at && offset + (int64_t)part.bytes <= until, "round %d",
                  round_now);
            for (; at < offset; at++)
                CHECK(memory_of[at] == NOWHERE, "round %d: %lld left out", round_now,
                      (long long)at);
            for (size_t i = 0; i < part.bytes && at < FILE_BYTES; i++, at++)
                CHECK(memory_of[at] == part.memory + i - memory, "round %d: %lld elsewhere",
                      round_now, (long long)at);
        }
        uint64_t next = cursor_at(&c);
        CHECK(next >= (uint64_t)until, "round %d", round_now);
        CHECK(next >= FILE_BYTES || memory_of[next] != NOWHERE, "round %d", round_now);
        for (; at < until && at < FILE_BYTES; at++)
            CHECK(memory_of[at] == NOWHERE, "round %d: %lld left out", round_now, (long long)at);
    }
}

/* `bytes` bytes of memory and of the view, from `position` on, byte by byte; whether they fit. */
static int write_out(const struct map *file, const struct map *memory, int64_t shift,
                     int64_t position, int64_t bytes, int64_t *low, int64_t *high)
{
    for (int64_t at = 0; at < FILE_BYTES; at++)
        memory_of[at] = NOWHERE;
    for (int64_t i = 0; i < bytes; i++) {
        int64_t at = shift + place_of(file, position + i);
        if (at >= FILE_BYTES)
            return 0;
        memory_of[at] = place_of(memory, i);
        *low = i ? *low : at;
        *high = at + 1;
    }
    return 1;
}

static void check_grain(const struct io_request *r)
{
    struct io_cursor c;
    struct io_part part;
    uint64_t grain = UINT64_C(1) << request_grain(r);
    cursor_seek(&c, r, 0);
    while (cursor_next(&c, UINT64_MAX, &part))
        CHECK(part.offset % grain == 0 && part.bytes % grain == 0,
              "round %d: %zu bytes at %llu, grain %llu", round_now, part.bytes,
              (unsigned long long)part.offset, (unsigned long long)grain);
}

static int one_round(void)
{
    static char buffer[16];
    char *memory = buffer;
    struct type *byte;
    struct file_view view;
    struct io_request r;
    int compared = 0;
    struct recipe *file = recipe_random(1 + (int)below(3), 1);
    struct recipe *into = recipe_random((int)below(4), 0);
    struct map *seen = recipe_map(file), *held = recipe_map(into);
    int64_t shift = below(50), count = below(4), position = below(200), low = 0, high = 0;
    type_basic(1, &byte, NULL);
    if (!seen->too_many && seen->n && !held->too_many &&
        write_out(seen, held, shift, position, count * map_size(held), &low, &high) &&
        file_view_create(&view, shift, byte, file->type, NULL) == 0) {
        int rc = request_of_view(&r, &view, (uint64_t)position, into->type, (uint64_t)count, memory,
                                 NULL);
        CHECK(rc == 0, "round %d: %d", round_now, rc);
        CHECK((int64_t)r.bytes == count * map_size(held), "round %d", round_now);
        CHECK((int64_t)r.low == low && (int64_t)r.high == high, "round %d: hull", round_now);
        CHECK((request_mean_run(&r) > 0) == (r.bytes > 0), "round %d", round_now);
        check_parts(&r, memory, 0, FILE_BYTES);
        check_grain(&r);
        check_parts(&r, memory, below(FILE_BYTES), 1 + below(700));
        request_destroy(&r);
        file_view_destroy(&view);
        compared = 1;
    }
    type_release(byte);
    free(seen);
    free(held);
    recipe_destroy(file);
    recipe_destroy(into);
    return compared;
}

static void what_does_not_fit_is_refused(void)
{
    struct type *byte, *nothing, *far;
    struct file_view view, blind;
    struct io_request r;
    struct brg_error err = {.text = ""};
    char memory;
    type_basic(1, &byte, NULL);
    type_basic(0, &nothing, NULL);
    type_resized(byte, 0, INT64_MAX / 4, &far, NULL);
    file_view_create(&view, 0, byte, far, NULL);
    file_view_create(&blind, 0, byte, nothing, NULL);
    CHECK(request_of_view(&r, &view, 2, byte, 2, &memory, &err) == 0, "%s", err.text);
    CHECK(r.low == 2 * (uint64_t)(INT64_MAX / 4) && r.high == 3 * (uint64_t)(INT64_MAX / 4) + 1,
          "at the end of what 63 bits reach");
    request_destroy(&r);
    CHECK(request_of_view(&r, &view, 3, byte, 3, &memory, &err) == -EOVERFLOW, "%s", err.text);
    CHECK(request_of_view(&r, &blind, 0, byte, 1, &memory, &err) == -EINVAL, "%s", err.text);
    CHECK(request_of_view(&r, &view, 0, far, 6, &memory, &err) == -EOVERFLOW, "%s", err.text);
    CHECK(request_of_view(&r, &blind, 7, byte, 0, &memory, &err) == 0 && r.bytes == 0, "nothing");
    file_view_destroy(&view);
    file_view_destroy(&blind);
    type_release(far);
    type_release(nothing);
    type_release(byte);
}

/* Every 6,144 bytes `run` bytes, from `shift` on; the request begins at `position`, and lies in
 * memory in pieces. */
static uint32_t grain_of(int64_t run, int64_t shift, uint64_t position, int64_t piece)
{
    static char memory[1 << 20];
    struct type *byte, *runs, *tile, *pieces;
    struct file_view view;
    struct io_request r;
    uint32_t grain;
    type_basic(1, &byte, NULL);
    type_hvector(4, run, 6144, byte, &runs, NULL);
    type_resized(runs, 0, 4 * 6144, &tile, NULL);
    type_hvector(12288 / piece, piece, 2 * piece, byte, &pieces, NULL);
    CHECK(!file_view_create(&view, shift, byte, tile, NULL) &&
              !request_of_view(&r, &view, position, pieces, 1, memory, NULL),
          "a view of runs of %lld bytes", (long long)run);
    check_grain(&r);
    grain = request_grain(&r);
    request_destroy(&r);
    file_view_destroy(&view);
    type_release(pieces);
    type_release(tile);
    type_release(runs);
    type_release(byte);
    return grain;
}

static void the_grain_is_that_of_runs_and_pieces_of_memory(void)
{
    CHECK(grain_of(1536, 0, 0, 12288) == 9, "runs of 3 x 512");
    CHECK(grain_of(1536, 512, 0, 12288) == 9, "displaced by one of these");
    CHECK(grain_of(1536, 64, 0, 12288) == 6, "by less");
    CHECK(grain_of(1536, 0, 8, 12288) == 3, "begun in a run");
    CHECK(grain_of(1536, 0, 1536, 12288) == 9, "at the next one");
    CHECK(grain_of(1536, 0, 0, 24) == 3, "memory in pieces");
    CHECK(grain_of(1536, 0, 0, 1) == 0, "of a byte");
    CHECK(grain_of(1500, 0, 0, 12288) == 2, "runs of 4 x 375");
    CHECK(grain_of(6144, 0, 0, 12288) == 12, "no holes");
}

int main(void)
{
    int compared = 0;
    for (round_now = 0; round_now < ROUNDS && failures < 10; round_now++) {
        random_state = (uint64_t)round_now;
        compared += one_round();
    }
    CHECK(compared > ROUNDS / 2, "%d of %d", compared, ROUNDS);
    what_does_not_fit_is_refused();
    the_grain_is_that_of_runs_and_pieces_of_memory();
    printf("%d failures\n", failures);
    return failures != 0;
}
