/* What the files of the store share. */
#ifndef BRG_IO_STORE_INSIDE_H
#define BRG_IO_STORE_INSIDE_H

#include "io/store.h"
#include "io/sums.h"

struct io_store {
    struct store_token token;
    int sync, checksums, verify, async;
    uint32_t rank;
    int fd;            /* of the data, or -1 */
    uint64_t read;     /* bytes, for faults */
    struct sums *sums; /* of a file that is written, from the first write on */
    /* verify=yes: the sections that have matched all that was read so far */
    struct sums_file *known;
    unsigned candidates;
};

/* A name beside a file: its path and a suffix (".sums"). */
#define STORE_NAME_BYTES (STORE_PATH + 16)
void store_name(char name[STORE_NAME_BYTES], const char *path, const char *suffix);

/* What was read matches, block by block: store_verify.c. 0; -EBADMSG; -errno. */
int store_check(struct io_store *store, const void *buf, size_t bytes, uint64_t offset,
                struct brg_error *err);

/* Removes .NAME.brg-ID and all that belongs to it, or what of it is there. */
void store_remove_temporary(const char *base);

/* Removes temporary files of `path` whose job has died on this very host. */
void store_sweep(const char *path, uint32_t host);

/* This host since it started. */
uint32_t store_host(void);

/* The section of `file` that belongs to the file of this inode and size, or -1. */
int store_own_section(const struct sums_file *file, uint64_t inode, uint64_t size);

#endif
