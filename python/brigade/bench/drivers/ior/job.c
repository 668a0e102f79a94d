/* See job.h. */
#include "job.h"

#include <mpi.h>
#ifdef WITH_SHMEM
#include <shmem.h>
#endif

void job_start(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
#ifdef WITH_SHMEM
    shmem_init();
#endif
}

void job_end(void)
{
#ifdef WITH_SHMEM
    shmem_finalize();
#else
    MPI_Finalize();
#endif
}

int job_has_shmem(void)
{
#ifdef WITH_SHMEM
    return 1;
#else
    return 0;
#endif
}

int job_ranks(void)
{
    int ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    return ranks;
}
