/* What the public calls share. */
#ifndef BRG_IO_FILE_H
#define BRG_IO_FILE_H

#include "io/move.h"

/* What a rank has come for, when all meet. The least of all ranks' is done; those who came for
 * more serve it and meet again. */
enum file_action {
    FILE_WRITE = 1,
    FILE_READ,
    FILE_COMMIT,
    FILE_CLOSE
};

struct brg_file {
    struct io_world *world;
    struct io_hints hints;
    struct store_token token;
    struct io_store *store;
    uint64_t size;
    struct brg_error failure; /* code != 0: every later call fails with it */
    int committed;
    char explained[2048];
};

/* Meets the other ranks with `request` until what this one came for has been done. */
int file_meet(brg_file *f, enum file_action action, const struct io_request *request,
              struct brg_error *err);

#endif
