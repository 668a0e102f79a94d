/* Collective calls whose runs lie far apart.
 *
 *     apart FILE RUN PITCH COUNT ROUNDS warm|cold
 *
 * Rank r of n has COUNT runs of RUN bytes, the i-th at (i * n + r) * PITCH, by a view. Each round
 * opens the file, which is there in full, writes them in one call, closes it, and the same again to
 * read them, with another order of ranks; what is read is compared. cold: before each, the file is
 * synced and dropped from every node's memory. Rank 0 prints a line of JSON a round: seconds from
 * the first open to the last close. */
#define _GNU_SOURCE
#include <mpi.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, ranks, cold;
static const char *path;
static long run, pitch, count;
static char *memory;

/* The byte at `place` of a run, in a round. */
static char byte_at(int owner, long place, int round)
{
    return (char)(owner * 31 + place * 7 + place / 251 + round * 13);
}

static void make_file(void)
{
    long left = pitch * ranks * count, piece = 1 << 20;
    char *some = memset(malloc((size_t)piece), 7, (size_t)piece);
    FILE *f = fopen(path, "w");
    for (; f && left > 0; left -= piece)
        if (fwrite(some, 1, (size_t)piece, f) != (size_t)piece)
            break;
    if (!f || fclose(f) || left > 0) {
        perror(path);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    free(some);
}

static void drop(void)
{
    int fd = open(path, O_RDWR);
    fsync(fd);
    MPI_Barrier(MPI_COMM_WORLD);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

static double move(int writes, int owner)
{
    MPI_File f;
    MPI_Datatype runs, view;
    if (cold)
        drop();
    MPI_Type_vector((int)count, (int)run, (int)(pitch * ranks), MPI_BYTE, &runs);
    MPI_Type_create_resized(runs, 0, pitch * ranks * count, &view);
    MPI_Type_commit(&view);
    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime(), took;
    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &f);
    MPI_File_set_view(f, owner * pitch, MPI_BYTE, view, "native", MPI_INFO_NULL);
    if (writes)
        MPI_File_write_all(f, memory, (int)(run * count), MPI_BYTE, MPI_STATUS_IGNORE);
    else
        MPI_File_read_all(f, memory, (int)(run * count), MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&f);
    double mine = MPI_Wtime() - began;
    MPI_Allreduce(&mine, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Type_free(&view);
    MPI_Type_free(&runs);
    return took;
}

static void check(int owner, int round)
{
    for (long i = 0; i < run * count; i++)
        if (memory[i] != byte_at(owner, i, round)) {
            fprintf(stderr, "rank %d: byte %ld of %d's is wrong\n", rank, i, owner);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 7) {
        if (rank == 0)
            fprintf(stderr, "usage: apart FILE RUN PITCH COUNT ROUNDS warm|cold\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    path = argv[1];
    run = atol(argv[2]);
    pitch = atol(argv[3]);
    count = atol(argv[4]);
    cold = !strcmp(argv[6], "cold");
    memory = malloc((size_t)(run * count));
    if (rank == 0)
        make_file();
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; round < atoi(argv[5]); round++) {
        int owner = (rank + 1) % ranks;
        for (long i = 0; i < run * count; i++)
            memory[i] = byte_at(rank, i, round);
        double wrote = move(1, rank);
        memset(memory, 0, (size_t)(run * count));
        double read = move(0, owner);
        check(owner, round);
        if (rank == 0)
            printf("{\"write\": %.9f, \"read\": %.9f}\n", wrote, read);
    }
    if (rank == 0)
        unlink(path);
    MPI_Finalize();
    return 0;
}
