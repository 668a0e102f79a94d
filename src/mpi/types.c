/* See types.h. */
#include "mpi/types.h"

#include <stdlib.h>

void mpi_contents_drop(struct mpi_contents *contents)
{
    free(contents->integers);
    free(contents->addresses);
    free(contents->counts);
    free(contents->types);
    *contents = (struct mpi_contents){0};
}
