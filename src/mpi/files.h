/* What MPI knows of a program's files, for a library that does some of their calls in its place. */
#ifndef BRG_MPI_FILES_H
#define BRG_MPI_FILES_H

#include "mpi/mpi.h"

struct mpi_files {
    /* The individual pointer of this rank, in etypes of the view. Local; 0 or -ECOMM. */
    int (*position)(mpi_handle file, int64_t *etypes);
    int (*seek)(mpi_handle file, int64_t etypes);
    /* Whether the file is in atomic mode. Local; 1 where MPI does not say. */
    int (*atomic)(mpi_handle file);
    /* A status that says `bytes` were moved; MPI_STATUS_IGNORE is left alone. */
    void (*tell)(void *status, uint64_t bytes);
    /* Calls the file's error handler with MPI's class for this -errno (-E2BIG: MPI_ERR_COUNT), and
     * returns that class;
     * of MPI_FILE_NULL no handler is called. */
    int (*raise)(mpi_handle file, int code);
    /* The value of a key of an MPI_Info, cut to `room` bytes with its NUL: 1; 0: it has none. */
    int (*hint)(mpi_handle info, const char *key, char *value, size_t room);
    /* Communicators: whether both have the same ranks in the same order (local); a copy of one
     * (collective), or 0; the end of a copy. */
    int (*same_ranks)(mpi_handle a, mpi_handle b);
    /* Whether it is no intercommunicator, and all of its ranks are of MPI_COMM_WORLD; what it takes
     * grows with the square of the ranks where both have not the same. Local. */
    int (*is_intra)(mpi_handle comm);
    int (*is_of_world)(mpi_handle comm);
    mpi_handle (*copy)(mpi_handle comm);
    void (*free)(mpi_handle copy);
    int (*rank)(void); /* of MPI_COMM_WORLD */
    /* Whether several threads may be in MPI at a time, on any rank. Collective over `comm`; 0: what
     * is known of it without the others. */
    int (*threads)(mpi_handle comm);
    int mode_read, mode_write, mode_sequential; /* of MPI_File_open: only reading, only writing */
    /* As in ROMIO: a rank that reads alone what lies together leaves its pointer where the file
     * ended. Elsewhere, and in all other calls, it moves by what was asked for. */
    int stops_at_end;

    /* For files that MPI opens late: NULL where that is not known of this MPI's handles. Calls of
     * MPI return its code. */
    const struct mpi_late *late;
};

struct mpi_late {
    int mode_create, mode_both, mode_unique; /* beside mode_read and mode_write */
    int seek_from_start;
    mpi_handle no_file, no_comm, no_info;
    /* Collective over `comm`: of each value the least of all ranks. */
    int (*least)(mpi_handle comm, int64_t *values, int n);
    int (*open)(mpi_handle comm, const char *path, int mode, mpi_handle info, mpi_handle *file);
    int (*close)(mpi_handle *file);
    /* With data representation "native". */
    int (*set_view)(mpi_handle file, int64_t displacement, mpi_handle etype, mpi_handle filetype,
                    mpi_handle info);
    int (*seek_shared)(mpi_handle file, int64_t etypes);
    /* The error handler of a file, or of MPI_FILE_NULL: that of files to be opened. */
    int (*handler)(mpi_handle file, mpi_handle *handler);
    int (*set_handler)(mpi_handle file, mpi_handle handler);
    void (*free_handler)(mpi_handle handler);
    int (*same_handler)(mpi_handle a, mpi_handle b);
    /* The group of a communicator, as MPI_Comm_group. */
    int (*group)(mpi_handle comm, void *group);
    /* A copy of hints, and its end; one for the program, as MPI_Info_dup. */
    int (*copy_info)(mpi_handle info, mpi_handle *copy);
    void (*free_info)(mpi_handle copy);
    int (*give_info)(mpi_handle info, void *copy);
    /* The n-th key of hints and its value, from 0: 1; 0: there are no more. MPI_INFO_NULL has
     * none. `key` has room for 256 bytes. */
    int (*nth_hint)(mpi_handle info, int n, char *key, char *value, size_t room);
    /* As MPI_File_get_info. */
    int (*hints)(mpi_handle file, mpi_handle *info);
    /* A type for mpi_types.release: a predefined one is itself. */
    int (*copy_type)(mpi_handle type, mpi_handle *copy);
    /* A request that is done already, whose status says `bytes` were moved. */
    int (*request)(uint64_t bytes, void *request);
};

#endif
