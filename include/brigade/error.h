/* The error that a person will read: what failed, which path or node, what to do. */
#ifndef BRIGADE_ERROR_H
#define BRIGADE_ERROR_H

#include <stdint.h>

#if defined(__GNUC__)
#define BRG_API __attribute__((visibility("default")))
#else
#define BRG_API
#endif

/* Last argument of calls whose failure is shown to people; may be NULL. Written only on failure;
 * `code` is what the call returns. */
struct brg_error {
    int code; /* -errno */
    char text[1024];
    /* Of a failed collective call, the same on every rank (brigade/io.h): where it failed. */
    int rank;        /* rank in the communicator, or -1 */
    int64_t offset;  /* byte in the file, or -1 */
    char path[1024]; /* file, cut if longer; or "" */
};

#endif
