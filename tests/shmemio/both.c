/* OpenSHMEM and MPI in one program: files on all PEs, on a set, on communicators of MPI's, at once.
 *
 *   both FOLDER shmem|mpi       which of them is started first
 */
#include <mpi.h>
#include <shmem.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "brigade/shmemio.h"

static int failures;

static SHMEM_File opened(SHMEM_Comm comm, const char *folder, const char *name)
{
    char path[4096];
    SHMEM_File f = SHMEM_FILE_NULL;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (SHMEM_File_open(comm, path, SHMEM_MODE_CREATE | SHMEM_MODE_RDWR, SHMEM_INFO_NULL, &f)) {
        printf("FAIL %s\n", SHMEM_Last_error()->text);
        shmem_global_exit(1);
    }
    return f;
}

/* A letter of each rank of the group. */
static void write_letter(SHMEM_File f, int rank, int letter)
{
    char byte = (char)letter;
    if (SHMEM_File_write_at_all(f, rank, &byte, 1, SHMEM_CHAR, SHMEM_STATUS_IGNORE)) {
        printf("FAIL %s\n", SHMEM_Last_error()->text);
        failures++;
    }
}

int main(int argc, char **argv)
{
    int rank, in_half, sum = 0;
    MPI_Comm half;
    SHMEM_Comm set;
    char name[16];
    if (argc < 3)
        return 2;
    if (strcmp(argv[2], "mpi") == 0)
        MPI_Init(&argc, &argv);
    shmem_init();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank != shmem_my_pe())
        failures++;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Comm_rank(half, &in_half);
    SHMEM_Comm_active_set(rank % 2, 1, (shmem_n_pes() + 1 - rank % 2) / 2, &set);
    SHMEM_File all = opened(SHMEM_COMM_WORLD, argv[1], "all");
    snprintf(name, sizeof name, "set.%d", rank % 2);
    SHMEM_File mine = opened(set, argv[1], name);
    snprintf(name, sizeof name, "half.%d", rank % 2);
    SHMEM_File by_mpi = opened(SHMEM_Comm_of_mpi(half), argv[1], name);
    for (int round = 0; round < 3; round++) {
        write_letter(all, rank, 'A' + rank);
        write_letter(mine, in_half, 'a' + rank);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        write_letter(by_mpi, in_half, '0' + rank);
        shmem_barrier_all();
    }
    int asked, halves;
    SHMEM_Comm of_half = SHMEM_Comm_of_mpi(half);
    MPI_Comm_size(half, &sum);
    failures += SHMEM_Comm_rank(of_half, &asked) != 0 || asked != in_half;
    failures += SHMEM_Comm_size(of_half, &halves) != 0 || halves != sum;
    failures += SHMEM_File_close(&by_mpi) != 0;
    failures += SHMEM_File_close(&mine) != 0;
    failures += SHMEM_File_close(&all) != 0;
    MPI_Comm_free(&half);
    shmem_finalize(); /* MPI's end as well */
    return failures != 0;
}
