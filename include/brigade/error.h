/* The error that a person will read: what failed, which path or node, what to do. */
#ifndef BRIGADE_ERROR_H
#define BRIGADE_ERROR_H

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
};

#endif
