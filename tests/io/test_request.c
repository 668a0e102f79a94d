/* Requests against brute force: every byte of memory, where it lies in the file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "move/request.h"

#define FILE_BYTES 4096

static uint64_t state = 1;
static int failures;

static uint64_t below(uint64_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 33) % n;
}

static void check(int ok, const char *what, int round)
{
    if (!ok && failures++ < 10)
        printf("round %d: %s\n", round, what);
}

/* Walks the request from `from`, cut at multiples of `cut`, and compares with `memory_of`: index of
 * the byte of memory that lies at a byte of the file, or -1. */
static void compare(const struct io_request *r, const char *memory, const int *memory_of,
                    uint64_t from, uint64_t cut, int round)
{
    struct io_cursor c;
    struct io_part part;
    uint64_t at = from;
    for (uint64_t until = from - from % cut + cut; until <= FILE_BYTES + cut; until += cut) {
        cursor_seek(&c, r, at);
        while (cursor_next(&c, until, &part)) {
            check(part.bytes > 0 && part.offset >= at && part.offset + part.bytes <= until,
                  "parts are in order, not empty, and end at the boundary", round);
            for (; at < part.offset; at++)
                check(memory_of[at] < 0, "a byte was left out", round);
            for (size_t i = 0; i < part.bytes; i++, at++)
                check(memory_of[at] == part.memory + i - memory, "a byte lies elsewhere", round);
        }
        uint64_t next = cursor_at(&c);
        check(next >= until, "nothing is left before the boundary", round);
        check(next == UINT64_MAX || memory_of[next] >= 0, "cursor_at is a byte of the request",
              round);
        for (; at < until && at < FILE_BYTES; at++)
            check(memory_of[at] < 0, "a byte was left out", round);
        at = until;
    }
}

static void random_pieces(int round)
{
    static char memory[64 * 200];
    brg_piece pieces[60];
    int memory_of[FILE_BYTES], at = 0;
    size_t n = below(60);
    struct io_request r;
    memset(memory_of, 0xff, sizeof memory_of);
    for (size_t i = 0; i < n; i++) {
        pieces[i].bytes = below(4) ? below(200) : 0;
        pieces[i].offset = below(FILE_BYTES - pieces[i].bytes);
        for (uint64_t b = 0; b < pieces[i].bytes; b++)
            memory_of[pieces[i].offset + b] = at++; /* the last piece's byte stays */
    }
    check(request_of_pieces(&r, pieces, n, memory, NULL) == 0, "pieces are a request", round);
    uint64_t bytes = 0, low = UINT64_MAX, high = 0;
    for (uint64_t b = 0; b < FILE_BYTES; b++)
        if (memory_of[b] >= 0) {
            bytes++;
            low = b < low ? b : low;
            high = b + 1;
        }
    check(r.bytes == bytes && r.high == high && (!bytes || r.low == low), "hull of pieces", round);
    compare(&r, memory, memory_of, below(FILE_BYTES), 1 + below(700), round);
    request_destroy(&r);
}

static void random_block(int round)
{
    static char memory[8 * FILE_BYTES];
    int memory_of[FILE_BYTES], ndims = 1 + (int)below(5);
    uint64_t shape[5], start[5], count[5], index[5] = {0}, elements = 1, room = 1;
    int64_t strides[5], packed = 0;
    size_t element = 1 + below(3) * below(4);
    struct io_request r;
    memset(memory_of, 0xff, sizeof memory_of);
    for (int d = 0; d < ndims; d++) {
        shape[d] = 1 + below(room * element > 400 ? 2 : 5);
        room *= shape[d];
        start[d] = below(shape[d]);
        count[d] = 1 + below(shape[d] - start[d]);
        elements *= count[d];
    }
    uint64_t offset = below(FILE_BYTES - room * element + 1);
    packed = (int64_t)element;
    for (int d = ndims - 1; d >= 0; d--) { /* in memory with gaps, or none */
        strides[d] = packed;
        packed *= (int64_t)count[d] + (int64_t)below(2);
    }
    for (uint64_t e = 0; e < elements; e++) {
        uint64_t in_file = 0;
        int64_t in_memory = 0;
        for (int d = 0; d < ndims; d++) {
            in_file = in_file * shape[d] + start[d] + index[d];
            in_memory += (int64_t)index[d] * strides[d];
        }
        for (size_t b = 0; b < element; b++)
            memory_of[offset + in_file * element + b] = (int)(in_memory + (int64_t)b);
        for (int d = ndims - 1; d >= 0 && ++index[d] == count[d]; d--)
            index[d] = 0;
    }
    check(request_of_block(&r, offset, element, ndims, shape, start, count, strides, memory,
                           NULL) == 0,
          "a block is a request", round);
    check(r.bytes == elements * element, "bytes of a block", round);
    compare(&r, memory, memory_of, below(FILE_BYTES), 1 + below(700), round);
    request_destroy(&r);
}

/* In the time that sorting them takes: n * n steps would be minutes. */
static void one_long_piece_over_many_small_ones(void)
{
    enum {
        SMALL = 400000
    };
    struct io_request r;
    struct brg_error err;
    char *memory = malloc(SMALL * 3);
    brg_piece *pieces = malloc((SMALL + 1) * sizeof *pieces);
    for (int late = 0; late < 2; late++) {
        for (int i = 0; i < SMALL; i++)
            pieces[i + !late] = (brg_piece){.offset = (uint64_t)i * 2, .bytes = 1};
        pieces[late ? SMALL : 0] = (brg_piece){.offset = 0, .bytes = (uint64_t)SMALL * 2};
        check(request_of_pieces(&r, pieces, SMALL + 1, memory, &err) == 0, "many pieces", late);
        check(r.n_pieces == (late ? 1 : 2 * SMALL), "as many remain as count", late);
        check(r.bytes == SMALL * 2, "each byte once", late);
        request_destroy(&r);
    }
    free(pieces);
    free(memory);
}

static void bad_arguments(void)
{
    struct io_request r;
    struct brg_error err;
    brg_piece past = {.offset = INT64_MAX - 1, .bytes = 2};
    uint64_t huge[2] = {UINT64_C(1) << 40, UINT64_C(1) << 40}, one[2] = {1, 1}, zero[2] = {0, 0};
    char byte = 0;
    check(request_of_pieces(&r, &past, 1, &byte, &err) == -75, "a piece past 2^63", 0);
    check(request_of_block(&r, 0, 1, 2, huge, zero, one, NULL, &byte, &err) == -75,
          "an array past 2^63", 0);
    check(request_of_block(&r, 0, 1, 2, one, one, one, NULL, &byte, &err) == -22,
          "a block outside its array", 0);
    check(request_of_block(&r, 0, 0, 1, one, zero, one, NULL, &byte, &err) == -22,
          "elements without bytes", 0);
    check(request_of_block(&r, 0, 1, 17, one, zero, one, NULL, &byte, &err) == -22, "17 dimensions",
          0);
}

int main(void)
{
    one_long_piece_over_many_small_ones();
    for (int round = 1; round <= 3000; round++) {
        random_pieces(round);
        random_block(round);
    }
    bad_arguments();
    return failures != 0;
}
