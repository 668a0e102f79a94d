/* The checksums of a shared file, as they lie beside it (NAME.sums; docs/format.md).
 *
 * One section is a whole file's sums. There may be several: while a new file takes the place of an
 * old one, the sections of both are there. */
#ifndef BRG_IO_SUMS_FILE_H
#define BRG_IO_SUMS_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "brigade/error.h"

#define SUMS_MAGIC 0x31534d5553475242ull /* "BRGSUMS1", little-endian */
#define SUMS_VERSION 1u
#define SUMS_SECTIONS 4u

struct sums_head {
    uint64_t magic;
    uint32_t version, n_sections;
    uint64_t bytes;    /* of this file */
    uint64_t checksum; /* XXH3-64 of the 24 bytes before */
};

struct sums_section {
    uint64_t id;          /* random: which writing of the file this is */
    uint64_t size;        /* of the file */
    uint64_t inode;       /* of the file, a hint at which section is its own */
    uint64_t block_bytes; /* a power of two */
    uint64_t n_blocks;    /* size / block_bytes, rounded up; as many u64 follow */
    uint64_t zero[2];
    uint64_t checksum; /* XXH3-64 of the 56 bytes before and of the sums */
};

struct sums_file {
    int fd;
    uint32_t n;
    struct sums_section section[SUMS_SECTIONS];
    uint64_t at[SUMS_SECTIONS]; /* where a section's sums begin */
};

/* XXH3-64, which stands for 1 where it is 0: in a section, 0 says that all bytes of a block are 0
 * and were never written. */
uint64_t sums_of(const void *bytes, size_t n);

/* Opens and checks all of it. 0; -ENOENT: there is none; -EBADMSG: damaged; -EMEDIUMTYPE: a file of
 * that name is there, and it is not one of these; -errno. */
int sums_file_open(struct sums_file *file, const char *path, struct brg_error *err);
void sums_file_close(struct sums_file *file);

/* Sums of blocks [first, first + n) of a section. */
int sums_file_get(const struct sums_file *file, uint32_t section, uint64_t first, size_t n,
                  uint64_t *sums);

/* Where sums of a section that is to be written come from; 0 or -errno. */
typedef int sums_source(void *context, uint64_t first, size_t n, uint64_t *sums);

/* Writes a whole file of sections (checksums filled in here) to the descriptor of an empty one. */
int sums_file_write(int fd, const struct sums_section *sections, uint32_t n,
                    sums_source *const *sources, void *const *contexts);

#endif
