/* What the ranks of a file tell each other of its checksums while it is written: bytes at places,
 * zeros where nothing was put, in sheets of SUMS_SHEET. The first SUMS_PAGE bytes may lie in memory
 * that all of them share; the rest, or all of it, in a file beside the one that is written. Where
 * all of it is there, rank 0 makes the file before others need it; else who first needs it does. */
#ifndef BRG_IO_SUMS_PAD_H
#define BRG_IO_SUMS_PAD_H

#include <stddef.h>
#include <stdint.h>

#define SUMS_SHEET 4096u
#define SUMS_SHEETS 16u /* of the page in memory */
#define SUMS_PAGE (SUMS_SHEETS * SUMS_SHEET)

/* Bytes of it that say whether the file is there, and whether more than the first sheet may have
 * been touched. */
#define SUMS_PAGE_FILE (SUMS_SHEET - 1)
#define SUMS_PAGE_MORE (SUMS_SHEET - 2)

struct sums_pad {
    char *page;       /* or NULL */
    const char *path; /* of the file */
    int fd;           /* or -1 */
};

/* Nothing is opened yet. `page` and `path` stay the caller's. */
void sums_pad_open(struct sums_pad *pad, char *page, const char *path);
void sums_pad_close(struct sums_pad *pad);

/* Makes the file. 0, also where it is there, or -errno. */
int sums_pad_make(struct sums_pad *pad);

/* n bytes that lie within one sheet, its last two bytes left out. Ranks may put different bytes at
 * once. 0 or -errno. */
int sums_pad_put(struct sums_pad *pad, const void *bytes, size_t n, uint64_t at);
int sums_pad_get(struct sums_pad *pad, void *bytes, size_t n, uint64_t at);

#endif
