/* Whether a program may ask for a thing at all, before it asks: what it is linked with says so. */
#ifndef BRG_MPIIO_ASKS_H
#define BRG_MPIIO_ASKS_H

/* 1: an object of the process that is no part of the MPI refers to this call, "MPI_..." as C has
 * it, by that name, its PMPI_ one, or one of Fortran's; 0: none did when it was last looked, which
 * is done anew when objects were loaded. One that is looked up by dlsym alone is not found. For one
 * thread at a time, always with the same name. */
int asks_for(const char *name);

#endif
