/* Pieces far from each other: the holes between them cost nothing, and windows come in many epochs.
 *
 *   far PATH HINTS PIECES REACH
 *
 * Each rank writes PIECES pieces of 100 bytes, spread over REACH bytes in turns with the others',
 * some of them across the border of a window; then every rank reads the next one's. Prints "ok" and
 * the peak resident size of the largest rank in KiB. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "brigade/io.h"

#define BYTES 100u

static uint64_t place(uint64_t i, uint64_t n, uint64_t reach)
{
    uint64_t at = reach / n * i;
    return i % 3 ? at : at - at % 65536 + 65536 - BYTES / 2;
}

int main(int argc, char **argv)
{
    int rank, size, rc = 0;
    struct brg_error err = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    uint64_t n = strtoull(argv[3], NULL, 10), reach = strtoull(argv[4], NULL, 10), all = n * size;
    brg_piece *pieces = calloc(n, sizeof *pieces);
    char *buf = malloc(n * BYTES);
    brg_file *f;
    for (uint64_t i = 0; i < n; i++) {
        pieces[i] = (brg_piece){.offset = place(i * size + rank, all, reach), .bytes = BYTES};
        memset(buf + i * BYTES, (int)(rank + i), BYTES);
    }
    rc = brg_file_open(MPI_COMM_WORLD, argv[1], BRG_WRITE | BRG_CREATE, argv[2], &f, &err);
    rc = rc ? rc : brg_file_write_pieces(f, pieces, n, buf, &err);
    rc = rc ? rc : brg_file_commit(f, &err);
    rc = rc ? rc : brg_file_close(f, &err);
    rc = rc ? rc : brg_file_open(MPI_COMM_WORLD, argv[1], BRG_READ, argv[2], &f, &err);
    int next = (rank + 1) % size;
    for (uint64_t i = 0; i < n; i++)
        pieces[i].offset = place(i * size + next, all, reach);
    memset(buf, 0, n * BYTES);
    rc = rc ? rc : brg_file_read_pieces(f, pieces, n, buf, &err);
    for (uint64_t i = 0; i < n * BYTES && !rc; i++)
        if (buf[i] != (char)(next + i / BYTES)) {
            printf("rank %d: byte %llu is %d\n", rank, (unsigned long long)i, buf[i]);
            rc = 1;
        }
    rc = rc ? rc : brg_file_close(f, &err);
    if (rc) {
        printf("rank %d: %d %s\n", rank, rc, err.text);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    struct rusage usage;
    long most = 0;
    getrusage(RUSAGE_SELF, &usage);
    MPI_Reduce(&usage.ru_maxrss, &most, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("ok %ld\n", most);
    MPI_Finalize();
    return 0;
}
