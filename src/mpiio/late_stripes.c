/* See late_stripes.h. What a value is, and whether the file system has stripes at all, is MPI's to
 * find out. */
#include "mpiio/late_stripes.h"

#include <stdlib.h>
#include <unistd.h>

/* ROMIO's and its kin's, OMPIO's. */
static const char *const keys[] = {"striping_factor",
                                   "striping_unit",
                                   "start_iodevice",
                                   "romio_lustre_start_iodevice",
                                   "panfs_layout_type",
                                   "stripe_size",
                                   "stripe_width",
                                   "OMPI_MCA_fs_lustre_stripe_size",
                                   "OMPI_MCA_fs_lustre_stripe_width",
                                   NULL};

/* Each may give any hints to any file; Open MPI's are of its own. */
static const char *const variables[] = {"ROMIO_HINTS", "OMPI_MCA_fs_lustre_stripe_size",
                                        "OMPI_MCA_fs_lustre_stripe_width", NULL};

static int is_given(const struct mpi_files *mpi, mpi_handle info)
{
    char value[8];
    for (int i = 0; keys[i]; i++)
        if (mpi->hint(info, keys[i], value, sizeof value))
            return 1;
    for (int i = 0; variables[i]; i++)
        if (getenv(variables[i]))
            return 1;
    return 0;
}

/* ROMIO's of a whole system. It is looked for once. */
static int has_system(void)
{
    static int known; /* 1: no; 2: yes */
    if (!known)
        known = 1 + (access("/etc/romio-hints", F_OK) == 0);
    return known == 2;
}

/* Cray's MPICH gives hints by names of files, not only as it makes them. */
int late_stripes_asked(const struct mpi_files *mpi, mpi_handle info, int creates)
{
    return getenv("MPICH_MPIIO_HINTS") || (creates && (is_given(mpi, info) || has_system()));
}
