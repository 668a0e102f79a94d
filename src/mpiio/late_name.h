/* The name by which MPI opens a late file: the one that the program used, if that still is the
 * file; else the descriptor of a rank that has it open, by its name in /proc. A program may remove
 * its file as soon as all have it open, or give the name to another one. */
#ifndef BRG_MPIIO_LATE_NAME_H
#define BRG_MPIIO_LATE_NAME_H

#include <stdint.h>

struct file;

enum {
    LATE_BY_NAME,   /* 1: the name is the file */
    LATE_BY_NUMBER, /* 1: the descriptor is seen */
    LATE_CODE,      /* -errno: MPI would not be able to open it here; 0 */
    LATE_NAME_VALUES
};

struct late_name {
    int64_t found[LATE_NAME_VALUES]; /* where ranks open it together: the least of all */
    const char *name;
    char number[64];
    const char *path; /* chosen */
};

/* Local. `pid` has it open as `descriptor`. `file` outlives the name. */
void late_name_look(struct late_name *name, const struct file *file, int pid, int descriptor);

/* As `found` says, the same on all ranks if that is. 0; or -errno, and `path` is no use. */
int late_name_choose(struct late_name *name);

#endif
