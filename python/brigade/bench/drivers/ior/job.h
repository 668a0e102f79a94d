/* The job that the program is: of MPI, or, built with oshcc (WITH_SHMEM), of OpenSHMEM as well,
 * whose end is also MPI's. */
#ifndef IOR_JOB_H
#define IOR_JOB_H

void job_start(int *argc, char ***argv);
void job_end(void);
int job_has_shmem(void);
int job_ranks(void);

#endif
