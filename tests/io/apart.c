/* Ranks read pieces of a file that lie apart, and say how that went:
 *
 *     apart FILE HINTS WHOSE PITCH
 *
 * Each of the ranks writes 512 KiB. Then each reads 60 pieces of 20 bytes: WHOSE own, by PITCH
 * from its own 512 KiB; WHOSE all, between those of the others, one of any rank every PITCH bytes.
 * A line of each rank: "right", what is wrong, or the error; rank 0 adds what the file says of the
 * call. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "brigade/io.h"

enum {
    BLOCK = 512 << 10,
    PIECES = 60,
    BYTES = 20
};

static char block[BLOCK], got[PIECES * BYTES];

static char byte_at(uint64_t offset)
{
    return (char)(offset * 7 + offset / 255);
}

static const char *judge(const brg_piece *pieces)
{
    for (int i = 0; i < PIECES; i++)
        for (int k = 0; k < BYTES; k++)
            if (got[i * BYTES + k] != byte_at(pieces[i].offset + (uint64_t)k))
                return "wrong";
    return "right";
}

int main(int argc, char **argv)
{
    int rank, ranks, rc;
    brg_piece pieces[PIECES];
    struct brg_error err = {.code = 0};
    brg_file *f;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int own = argc > 4 && !strcmp(argv[3], "own");
    uint64_t pitch = strtoull(argv[4], NULL, 10), mine = (uint64_t)rank * BLOCK;
    for (int i = 0; i < BLOCK; i++)
        block[i] = byte_at(mine + (uint64_t)i);
    if (brg_file_open(MPI_COMM_WORLD, argv[1], BRG_WRITE | BRG_CREATE, argv[2], &f, &err) ||
        brg_file_write(f, mine, block, BLOCK, &err) || brg_file_commit(f, &err) ||
        brg_file_close(f, &err) ||
        brg_file_open(MPI_COMM_WORLD, argv[1], BRG_READ, argv[2], &f, &err)) {
        printf("rank %d: %s\n", rank, err.text);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int i = 0; i < PIECES; i++)
        pieces[i] =
            (brg_piece){.offset = own ? mine + (uint64_t)i * pitch
                                      : ((uint64_t)i * (uint64_t)ranks + (uint64_t)rank) * pitch,
                        .bytes = BYTES};
    rc = brg_file_read_pieces(f, pieces, PIECES, got, &err);
    if (rc)
        printf("rank %d: error %d of rank %d at byte %lld\n", rank, rc, err.rank,
               (long long)err.offset);
    else
        printf("rank %d: %s\n", rank, judge(pieces));
    if (rank == 0)
        printf("explained: %s\n", brg_file_explain(f));
    brg_file_close(f, &err);
    MPI_Finalize();
    return 0;
}
