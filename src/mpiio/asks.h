/* Whether a program may ask for a thing at all, before it asks: what it is linked with says so. */
#ifndef BRG_MPIIO_ASKS_H
#define BRG_MPIIO_ASKS_H

/* What one may ask for: the calls that do it, "MPI_..." as C has them. */
enum asks {
    ASKS_HINTS,  /* of a file */
    ASKS_SHARED, /* reading or writing with the shared pointer, without the others */
    N_ASKS
};

/* 1: an object of the process that is no part of the MPI refers to such a call, by its name, its
 * PMPI_ one, or one of Fortran's; 0: none did when it was last looked, which is done anew when
 * objects were loaded. One that is looked up by dlsym alone is not found. For one thread at a
 * time. */
int asks_for(enum asks what);

#endif
