/* What is counted of each path, and said at exit. */
#ifndef BRG_BUFFER_REPORT_H
#define BRG_BUFFER_REPORT_H

#include <stdint.h>

#define REPORT_SIZES 12 /* calls of < 64, < 256, < 1K, ... bytes: a factor of 4 each */

struct record {
    char path[256];
    const char *dropped; /* why the file was left to the kernel, or NULL */
    char verbose;
    uint64_t opens;
    uint64_t reads, read_bytes, read_hits, read_sizes[REPORT_SIZES];
    uint64_t writes, write_bytes, write_hits, write_sizes[REPORT_SIZES];
    uint64_t seeks, syncs, waits; /* waits: calls that waited for the background */
    uint64_t fills, fill_bytes, fills_past_cache, ahead, ahead_used, flushes, flush_bytes;
    uint64_t direct_reads, direct_writes;
    uint64_t read_ns, write_ns, wait_ns, background_ns;
    int error; /* first errno met in the background */
    uint64_t errors;
};

extern int report_wanted; /* calls are timed */

/* The record of a path, made if need be; one for all further paths once there are many. */
struct record *report_of(const char *path, int verbose);
static inline unsigned report_size(uint64_t n)
{
    unsigned at = 0;
    for (n >>= 6; n && at < REPORT_SIZES - 1; n >>= 2)
        at++;
    return at;
}

void report_start(void);
void report_forked(void); /* in a child, which counts what it does itself */

/* At a process's end, once, however often it is called; also from a handler of a signal. */
void report_write(void);

#endif
