/* Writes random pieces from every rank, and compares the file with what one process would have
 * made of them; reads random pieces back. A program for both MPIs.
 *
 *   moving FOLDER HINTS SEED CASES [MOST]
 *
 * Each case draws, alike on every rank, the number of calls and the pieces of every rank in each:
 * none, few large, many small, strided, overlapping or not. MOST bounds a file's size. Prints one
 * line: "ok" and figures, or what differs. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "brigade/io.h"

#define MAX_PIECES 3000
#define MAX_CALLS 4

static uint64_t random_state;

static uint64_t next_random(void)
{
    random_state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = random_state;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t below(uint64_t n)
{
    return n ? next_random() % n : 0;
}

struct call {
    size_t n;
    brg_piece pieces[MAX_PIECES];
};

/* The pieces of `rank` in a call, from the seed alone. */
static size_t draw(struct call *call, uint64_t seed, int rank, int size, uint64_t most)
{
    size_t bytes = 0;
    random_state = seed;
    int kind = (int)below(6); /* the same for all ranks */
    uint64_t piece = 1 + below(below(2) ? 64 : most / 8 + 1), gap = below(3) ? 0 : below(piece);
    random_state = seed ^ (uint64_t)(rank + 1) * UINT64_C(0xd1342543de82ef95);
    if (kind == 5)
        kind = (int)below(5); /* each its own */
    call->n = 0;
    uint64_t block = most / (uint64_t)size;
    if (kind == 0 || block == 0) /* contiguous blocks, one after another */
        call->pieces[call->n++] = (brg_piece){.offset = block * (uint64_t)rank, .bytes = block};
    else if (kind == 1) /* strided, ranks side by side */
        for (uint64_t at = piece * (uint64_t)rank; call->n < MAX_PIECES && at + piece <= most;
             at += piece * (uint64_t)size + gap)
            call->pieces[call->n++] = (brg_piece){.offset = at, .bytes = piece};
    else if (kind == 2) /* anywhere, in any order */
        for (size_t n = below(100); call->n < n;) {
            uint64_t at = below(most), b = below(piece);
            call->pieces[call->n++] =
                (brg_piece){.offset = at, .bytes = b < most - at ? b : most - at};
        }
    else if (kind == 3 && below(2)) /* a few have much */
        call->pieces[call->n++] = (brg_piece){.offset = below(most / 2), .bytes = most / 2};
    for (size_t i = 0; i < call->n; i++)
        bytes += call->pieces[i].bytes;
    return bytes;
}

static char byte_of(uint64_t seed, int rank, uint64_t i)
{
    return (char)((seed ^ (uint64_t)rank * 31) + i * 7 + i / 251);
}

static void fill(char *buf, size_t bytes, uint64_t seed, int rank)
{
    for (size_t i = 0; i < bytes; i++)
        buf[i] = byte_of(seed, rank, i);
}

static void put(char *file, uint64_t *size, const struct call *call, const char *buf)
{
    for (size_t i = 0; i < call->n; i++) {
        const brg_piece *p = &call->pieces[i];
        memcpy(file + p->offset, buf, p->bytes);
        buf += p->bytes;
        if (p->bytes && p->offset + p->bytes > *size)
            *size = p->offset + p->bytes;
    }
}

static void die(const char *what, const struct brg_error *err)
{
    printf("%s: %d %s (rank %d, offset %lld)\n", what, err->code, err->text, err->rank,
           (long long)err->offset);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv)
{
    int rank, size;
    struct brg_error err = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *hints = argv[2];
    uint64_t seed = strtoull(argv[3], NULL, 10), cases = strtoull(argv[4], NULL, 10);
    uint64_t most = argc > 5 ? strtoull(argv[5], NULL, 10) : 1 << 20;
    struct call *call = malloc(sizeof *call);
    char path[4096], *expected = malloc(most), *found = malloc(most),
                     *buf = malloc(8 * most + 4096);
    uint64_t moved = 0;
    for (uint64_t c = 0; c < cases; c++) {
        uint64_t key = seed * 1000003 + c * 7919, length = 0;
        random_state = key;
        int calls = 1 + (int)below(MAX_CALLS);
        uint64_t limit = 1 + below(below(2) ? 5000 : most);
        brg_file *f;
        snprintf(path, sizeof path, "%s/case", argv[1]);
        memset(expected, 0, most);
        if (brg_file_open(MPI_COMM_WORLD, path, BRG_WRITE | BRG_CREATE, hints, &f, &err))
            die("open", &err);
        for (int k = 0; k < calls; k++) {
            for (int r = 0; r < size; r++) {
                uint64_t one = key + (uint64_t)k * 101;
                size_t bytes = draw(call, one, r, size, limit);
                if (bytes > 8 * most) {
                    printf("too many bytes\n");
                    MPI_Abort(MPI_COMM_WORLD, 1);
                }
                fill(buf, bytes, one, r);
                put(expected, &length, call, buf);
                moved += bytes;
            }
            size_t bytes = draw(call, key + (uint64_t)k * 101, rank, size, limit);
            fill(buf, bytes, key + (uint64_t)k * 101, rank);
            if (brg_file_write_pieces(f, call->pieces, call->n, buf, &err))
                die("write", &err);
        }
        if (brg_file_size(f) != length) {
            printf("case %llu: size %llu, not %llu\n", (unsigned long long)c,
                   (unsigned long long)brg_file_size(f), (unsigned long long)length);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        if (brg_file_commit(f, &err) || brg_file_close(f, &err))
            die("commit", &err);
        if (rank == 0) {
            FILE *in = fopen(path, "r");
            size_t got = fread(found, 1, most, in);
            fclose(in);
            size_t i = 0;
            while (i < length && found[i] == expected[i])
                i++;
            if (got != length || i < length) {
                printf("case %llu: %zu bytes of %llu; byte %zu is %d, not %d\n",
                       (unsigned long long)c, got, (unsigned long long)length, i, found[i],
                       expected[i]);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
        }
        if (brg_file_open(MPI_COMM_WORLD, path, BRG_READ, hints, &f, &err))
            die("open to read", &err);
        size_t bytes = draw(call, key + 1, rank, size, length);
        memset(buf, 0x55, bytes);
        if (length && brg_file_read_pieces(f, call->pieces, call->n, buf, &err))
            die("read", &err);
        const char *at = buf;
        for (size_t i = 0; length && i < call->n; at += call->pieces[i++].bytes)
            if (memcmp(at, expected + call->pieces[i].offset, call->pieces[i].bytes) != 0) {
                printf("case %llu: rank %d read piece %zu wrongly\n", (unsigned long long)c, rank,
                       i);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
        if (brg_file_close(f, &err))
            die("close", &err);
    }
    if (rank == 0)
        printf("ok: %llu cases, %llu bytes\n", (unsigned long long)cases,
               (unsigned long long)moved);
    MPI_Finalize();
    return 0;
}
