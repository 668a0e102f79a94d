/* One line from rank 0: how many ranks there are and on which hosts, as all ranks told it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, size, code = argc > 1 ? atoi(argv[1]) : 0;
    char host[64] = "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    gethostname(host, sizeof host);
    char *all = malloc((size_t)size * sizeof host);
    MPI_Allgather(host, sizeof host, MPI_CHAR, all, sizeof host, MPI_CHAR, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("ranks %d:", size);
        for (int i = 0; i < size; i++)
            printf(" %s", all + (size_t)i * sizeof host);
        printf("\n");
    }
    free(all);
    MPI_Finalize();
    return code;
}
