/* What stands behind a library of ours that takes over calls of MPI: MPI itself or another tool. */
#ifndef BRG_MPI_NEXT_H
#define BRG_MPI_NEXT_H

/* The function that the linker would take if the calling library were not there, or NULL: there is
 * no MPI (yet), or it has no such call. */
void *mpi_next(const char *name);

/* A handle of the first loaded library whose name is one of MPI's, with its path; NULL: none. It is
 * found where a search of the global scope does not come: Python loads MPI so. */
void *mpi_loaded(const char **path);

#endif
