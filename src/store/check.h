/* A whole file against its checksums. */
#ifndef BRG_IO_CHECK_H
#define BRG_IO_CHECK_H

#include <stdint.h>

#include "brigade/error.h"

#define CHECK_LISTED 64

struct check_bad {
    uint64_t offset, bytes; /* of the block in `path` */
    char path[1024];        /* the file, or one of its parts */
    char what[64];
};

struct check_report {
    uint64_t size, checked; /* bytes; of the file, and those read */
    uint64_t block_bytes;
    uint64_t n_blocks, n_bad;
    struct check_bad bad[CHECK_LISTED]; /* the first of n_bad */
    int parts;                          /* of a file of parts: how many; else 0 */
};

/* Called now and then with the bytes done, of `total`. */
typedef void check_progress(void *context, uint64_t done, uint64_t total);

/* Reads `path` (symbolic links followed) and compares each block. 0 with the report filled, n_bad
 * being 0 if all is well; -ENODATA: it has no checksums; -EBADMSG: they are damaged themselves, as
 * the text says; -errno. */
int check_file(const char *path, check_progress *progress, void *context,
               struct check_report *report, struct brg_error *err);

#endif
