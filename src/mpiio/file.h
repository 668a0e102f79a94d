/* The program's open files, as far as calls of theirs may be taken over.
 *
 * What is not done here is left to MPI, which opens every file: as the program does, or when it is
 * needed first (late.h). Handle, individual pointer and error handler are MPI's then. Beside it,
 * from the first call on that is taken over, there is a descriptor of our own for the same file. */
#ifndef BRG_MPIIO_FILE_H
#define BRG_MPIIO_FILE_H

#include <pthread.h>

#include "move/move.h"
#include "mpiio/file_name.h"
#include "mpiio/group.h"

/* A split collective call between its begin and its end. */
enum split {
    SPLIT_NONE,
    SPLIT_PASSED,
    SPLIT_DONE
};

/* Our own descriptor for the file, and the ranks that move bytes through it: from the first call on
 * that is taken over. */
struct reach {
    int opened;
    int unable; /* this rank has no descriptor, which the others hear at each call */
    struct io_world *world;
    struct io_hints hints;
    struct store_token token;
    struct io_store *store;
    struct drain *drain;
};

/* Whether this rank has written without the others since they last met: they may not know how long
 * the file is by that. */
enum wrote {
    WROTE_NOTHING,
    WROTE_ALONE,
    WROTE_ON /* and it is not known when that ends */
};

struct late;

struct file {
    mpi_handle handle; /* the program's: MPI's own, but of a late file */
    struct late *late; /* NULL: MPI opened it as the program did */
    unsigned flags;    /* BRG_*, of our own descriptor */
    const struct mpi_interface *mpi;
    struct group *group; /* not shared: several threads may call MPI */
    struct file *next;
    /* Why MPI does all its calls from now on; NULL: it does not. The same on all ranks. */
    const char *passes;
    int can_read, can_write, atomic, foreign; /* foreign: a data representation of its own */
    struct file_view view;                    /* if it has one */
    int has_view;
    uint64_t most_bytes; /* what it sees past these is somewhere else */
    enum split split;
    uint64_t split_bytes;
    char path[STORE_PATH];   /* as the program named it */
    struct file_name opened; /* not of a late one: what MPI opened by it */
    char given[512];         /* hints of its MPI_Info, as hints_parse takes them */
    struct reach all;        /* of collective calls */
    struct io_store *alone;  /* of independent ones: this rank's own, once it was needed */
    int not_alone;           /* it cannot be opened so */
    _Atomic int wrote;       /* enum wrote */
    pthread_rwlock_t used;   /* ours are, by calls of one rank; taken by who closes them */
};

/* One that is to be opened, not found by file_of yet, with a group that it gives back; NULL: it is
 * MPI's alone. It ends by file_end. */
struct file *file_new(const struct mpi_interface *mpi, struct group *group, const char *path,
                      int mode, mpi_handle info);
void file_end(struct file *file);
/* From now on file_of finds it by this handle, and no longer. */
void file_keep(struct file *file, mpi_handle handle);
void file_forget(struct file *file);

/* Why MPI is to do all calls of a file, as the same on all ranks; NULL: it need not. */
const char *file_left_to_mpi(const struct mpi_files *mpi, const char *path, int mode,
                             mpi_handle info);

/* After MPI has opened it. Collective over `comm`. */
void file_opened(mpi_handle handle, mpi_handle comm, const char *path, int mode, mpi_handle info);

/* Before MPI closes it; NULL is allowed. Collective. MPI's code, of which its error handler was
 * told. */
int file_closing(struct file *file);
/* Before that, collective: our descriptors are closed. 0, or what that has told of bytes that were
 * written: on some file systems a full disk is known no sooner. The same on all ranks, if they have
 * moved bytes together. */
int file_show_last(struct file *file, struct brg_error *failure);

/* NULL: not ours. */
struct file *file_of(mpi_handle handle);
struct file *file_by_number(int number);     /* a late one, as Fortran knows it */
struct file *file_in_mpi(mpi_handle handle); /* a late one, as MPI knows it */

/* After MPI has set it. Local. What cannot be read of it is known to this rank alone, as !has_view.
 * `name` is the data representation. */
void file_set_view(struct file *file, int64_t displacement, mpi_handle etype, mpi_handle filetype,
                   const char *name);

/* Collective, and agreed on: opens file->all, if it is not open. 0; or -1 with `passes` set. */
int file_reach(struct file *file);
/* Local: opens file->alone, if it is not open (a late file has one). 0; or -1, and MPI does what it
 * was for. */
int file_reach_alone(struct file *file);

/* A store of the file is shown to other nodes: its descriptor is closed, and opened again by who
 * uses it next. Local; as store_show. Who uses one without the other ranks says so, as another
 * thread may come to this meanwhile: from file_use to file_used, with nothing of the program's and
 * nothing of MPI's in between. */
void file_show_init(struct file *file);
int file_show(struct file *file, struct io_store *store, struct brg_error *failure);
void file_use(struct file *file);
void file_used(struct file *file);
/* After MPI_File_sync: what other nodes wrote will be seen. Local; 0, or what could not be written
 * after all. */
int file_synced(struct file *file);

/* This rank has written without the others; or MPI does so for it, until its requests have ended,
 * as they have when it syncs. NULL is allowed. */
void file_wrote(struct file *file);
void file_writes_on(struct file *file);
/* Local, before the ranks meet: whether it has, since they last did. Then *bytes, if the file is
 * longer, becomes what this rank knows of its size (NULL: not asked), and other nodes are shown
 * it. */
int file_show_written(struct file *file, uint64_t *bytes, struct brg_error *failure);
/* When they have met: what ranks of other nodes wrote will be seen. */
void file_look_again(struct file *file);

/* Collective over MPI_COMM_WORLD: MPI is about to end. */
void files_end(void);

#endif
