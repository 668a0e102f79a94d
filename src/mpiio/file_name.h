/* Which file a name led to when MPI opened it, so that it is found again when it is taken over: the
 * process may have gone to another folder by then, or the name may be another file's. */
#ifndef BRG_MPIIO_FILE_NAME_H
#define BRG_MPIIO_FILE_NAME_H

#include "store/store.h"

struct file_name {
    char path[STORE_PATH]; /* absolute; "": it has none that we know */
    uint64_t device, inode;
};

/* Local, when the file is open: what is asked is known to this node by then. */
void file_name_find(struct file_name *name, const char *path);
/* Whether a descriptor is of that file. */
int file_name_is_of(const struct file_name *name, int descriptor);

#endif
