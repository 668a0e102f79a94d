/* How much memory a rank needs for a file, beside the program's own.
 *
 *   lean PATH HINTS BYTES PIECE
 *
 * Each rank writes BYTES bytes, in pieces of PIECE in turns with the others'.
 * Prints the growth of the peak resident size (VmHWM) of the rank that grew most, in bytes. What is
 * written is memory that was never touched, so it takes none. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "brigade/io.h"

static long peak_bytes(void)
{
    char line[256];
    long kib = 0;
    FILE *in = fopen("/proc/self/status", "r");
    while (in && fgets(line, sizeof line, in))
        if (sscanf(line, "VmHWM: %ld", &kib) == 1)
            break;
    fclose(in);
    return kib * 1024;
}

int main(int argc, char **argv)
{
    int rank, size, rc;
    long grown, most = 0;
    struct brg_error err = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    uint64_t bytes = strtoull(argv[3], NULL, 10), piece = strtoull(argv[4], NULL, 10);
    uint64_t shape[3] = {bytes / piece, (uint64_t)size, piece}, start[3] = {0, (uint64_t)rank, 0};
    uint64_t count[3] = {bytes / piece, 1, piece};
    char *buf = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    brg_file *f;
    MPI_Barrier(MPI_COMM_WORLD);
    grown = peak_bytes();
    rc = brg_file_open(MPI_COMM_WORLD, argv[1], BRG_WRITE | BRG_CREATE, argv[2], &f, &err);
    rc = rc ? rc : brg_file_write_block(f, 0, 1, 3, shape, start, count, NULL, buf, &err);
    rc = rc ? rc : brg_file_commit(f, &err);
    rc = rc ? rc : brg_file_close(f, &err);
    grown = peak_bytes() - grown;
    MPI_Reduce(&grown, &most, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rc) {
        printf("rank %d: %d %s\n", rank, rc, err.text);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (rank == 0)
        printf("%ld\n", most);
    MPI_Finalize();
    return 0;
}
