/* Files that MPI opens late.
 *
 * MPI's own MPI_File_open costs milliseconds, and most files never need it: their calls are done
 * here. So a plain file of several ranks is opened by Brigade alone, and what the program gets is
 * a handle of ours. What is not done here is done by MPI after all, which opens the file when that
 * is needed first:
 *   together  for a collective call, by all ranks, as the program wanted it opened
 *   alone     for any other call, which may not wait for the others: on MPI_COMM_SELF
 * with the view, the individual pointer and the error handler that it has by then. The individual
 * pointer has one truth: that of the file that is open together, else alone, else `position`.
 *
 * Only files of the first kind could share a pointer: until there is one, it is in memory that the
 * ranks share. Ranks of several nodes share none: where one may want a pointer of all without the
 * others (asks.h), MPI opens the file. Every call of MPI that takes a file must come by here
 * (hooks_late.c). */
#ifndef BRG_MPIIO_LATE_H
#define BRG_MPIIO_LATE_H

#include <stdatomic.h>

#include "mpiio/file.h"

/* What the ranks share of it. */
struct late_page {
    _Atomic int64_t shared; /* pointer, in etypes */
    int64_t pid;            /* of rank 0, and its descriptor */
    int64_t descriptor;
};

/* Bytes of a handle of ours: what an MPI has behind one of its own takes less. */
#define LATE_FACE 1024

/* One that a program gave it; of MPI's things, copies. */
struct late_view {
    int64_t displacement;
    mpi_handle etype, filetype, info;
};

struct late {
    /* What the program's handle points at, all of it 0xff. Should it come to a function of MPI's
     * own, looked up in its library, that finds a file that is closed (Open MPI's flags) or no file
     * (ROMIO's cookie): an error, no crash. */
    unsigned char face[LATE_FACE];
    int mode;        /* as the program asked for */
    mpi_handle info; /* a copy */
    int number;      /* of the handle, as Fortran knows it */
    int64_t position;
    mpi_handle handler; /* of errors, as it was for files to be opened */
    int has_view;
    struct late_view view;
    int page_number;        /* of the world's */
    struct late_page *page; /* of all ranks, or, on several nodes, `own` */
    struct late_page own;
    int is_alone, is_together; /* which of these are open */
    mpi_handle alone, together;
};

/* Who else takes part in what is to be done by MPI. */
enum with {
    WITH_NOBODY,
    WITH_ALL
};

/* Collective over `comm`. 1: it is open, with *handle; 0: MPI shall open it. */
int late_open(mpi_handle comm, const char *path, int mode, mpi_handle info, mpi_handle *handle);
/* Collective; the file is gone. MPI's code, of which its error handler was told. */
int late_close(struct file *file, mpi_handle *handle);

/* The handle that MPI has for a file, late or not; collective if it says WITH_ALL. MPI's code, and
 * then there is none. */
int late_handle(struct file *file, enum with with, mpi_handle *handle);
/* Whether MPI has not opened it at all; and, the same on all ranks, not together. */
int late_is_ours(const struct file *file);
int late_is_apart(const struct file *file);
/* Of a late one: whether its page is that of all ranks. */
int late_is_shared(const struct file *file);

/* Of a late one: MPI closes what it has open of it, collective if that is together. The file's
 * error handler stays what it was. MPI's code. */
int late_end_mpi(struct file *file);

/* Of any file: its error handler is told, for which MPI opens it; what the call returns. */
int late_raise(struct file *file, int code);

/* The individual pointer of any file, in etypes. 0 or -ECOMM. */
int late_position(struct file *file, int64_t *etypes);
int late_seek(struct file *file, int64_t etypes);
/* Where several threads may call MPI, a call of one rank that moves it holds this, so that they
 * come in turn: 1, with *held, or 0. Its error handler may come here again, or end the file. */
int late_hold_pointer(const struct file *file, unsigned *held);
void late_release_pointer(unsigned held);

/* Of one that is apart, collective: 1: this is its view from now on; 0: MPI shall set it. */
int late_set_view(struct file *file, int64_t displacement, mpi_handle etype, mpi_handle filetype,
                  const char *name, mpi_handle info);
/* Local: its own copies end. */
void late_drop_view(struct file *file);

#endif
