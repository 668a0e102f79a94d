/* How a program must be started so that it notices nothing, judged by its own file.
 *
 * Freestanding, safe between vfork and exec: no allocation, no errno, a few short reads.
 */
#ifndef BRG_VIEW_BINARY_H
#define BRG_VIEW_BINARY_H

#include <stddef.h>

enum binary_start {
    BINARY_JOINS = 0, /* from its staged copy, with Brigade's libraries */
    BINARY_IN_PLACE,  /* by its own path: it asks the kernel, past any libc, where it lies */
    BINARY_ALONE      /* by its own path and without Brigade's libraries: they would break it */
};

enum {
    BINARY_HEAD = 256 /* the kernel's BINPRM_BUF_SIZE */
};

/* `head`: the first `n` bytes of the file that is open as `fd`.
 *
 * In place: static programs (no interpreter), and Go's, whose runtime reads /proc/self/exe by
 * system calls of its own. Alone: programs for another machine or word size, those whose
 * interpreter is not this system's glibc (musl, one brought along), and those linked with a
 * sanitizer that must be the first library of its process. What cannot be read, joins. */
enum binary_start binary_inspect(int fd, const char *head, size_t n);

#endif
