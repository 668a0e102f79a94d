/* The page in which a file-system client of the lab counts what it asks its server.
 *
 * One file per node, mapped shared by the client and read by `brigade lab stats`. It outlives the
 * client: a client that is mounted again goes on counting where the last one stopped. All numbers
 * are little-endian and only ever grow; readers need no lock.
 *
 *   offset 0   8   magic "BRGLABC1"
 *          8   8   number of kinds
 *         16   8   bytes received from data servers
 *         24   8   bytes sent to data servers
 *         32  32   per kind: name (NUL-terminated, 20), 1 if background (4), count (8)
 *
 * Background is what a client sends on its own, by the clock (to keep its session alive); it is
 * kept apart, because no program asked for it.
 */
#ifndef BRG_LAB_COUNTERS_H
#define BRG_LAB_COUNTERS_H

#include <stdint.h>

#define LAB_MAGIC UINT64_C(0x314342414c475242) /* "BRGLABC1" */
#define LAB_MAX_KINDS 64

struct lab_kind {
    char name[20];
    uint32_t background;
    uint64_t count;
};

struct lab_page {
    uint64_t magic;
    uint64_t n_kinds;
    uint64_t bytes_read;
    uint64_t bytes_written;
    struct lab_kind kinds[LAB_MAX_KINDS];
};

/* What a client will count, in the order of its kinds. */
struct lab_kind_name {
    const char *name;
    int background;
};

/* Maps the page in file `path`, which is made if it does not exist. Returns NULL with errno set. */
struct lab_page *lab_page_open(const char *path, const struct lab_kind_name *names, unsigned n);

/* Adds to a counter of the page. Any thread, any time. */
static inline void lab_count(uint64_t *counter, uint64_t n)
{
    __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

#endif
