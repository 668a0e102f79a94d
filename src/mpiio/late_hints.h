/* What MPI_File_get_info says of a file that MPI has not opened: what it has said of another one.
 *
 * MPI's answer has in it what it was given, the number of ranks, and what it finds out of the file
 * system. Of two files that were opened by the same ranks with the same hints it says the same,
 * where both are on one file system, of a kind whose files have no layout of their own. So the
 * first such file is MPI's from the start, and what it says is kept.
 *
 * Only programs that may ask, by what they are linked with (asks.h), or have asked, pay for that.
 * On file systems where each file has a layout, MPI opens the files of a program that has asked. */
#ifndef BRG_MPIIO_LATE_HINTS_H
#define BRG_MPIIO_LATE_HINTS_H

#include "mpiio/file.h"

/* Whether this file may be opened late, as far as its hints go. Of this rank; `file` is reached,
 * `info` what the program gave. */
int late_hints_allow(const struct mpi_late *mpi, const struct file *file, mpi_handle info);

/* Where some rank's may not: what MPI says of the file that it opens next in this thread is kept,
 * if that can be. late_hints_learn is called with it, or with 0. */
void late_hints_expect(const struct mpi_late *mpi, const struct file *file, mpi_handle info);
void late_hints_learn(mpi_handle opened);

/* A file that is apart: 1, and the program has a copy at `info`, as MPI_File_get_info gives it; 0:
 * MPI has to open it. */
int late_hints_answer(const struct file *file, void *info);

/* Whether a view may bring hints along, and MPI not be told before it opens the file. */
int late_hints_unasked(void);

void late_hints_end(void);

#endif
