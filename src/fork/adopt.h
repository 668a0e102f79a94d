/* A child of the template takes over descriptors, environment and names. */
#ifndef BRG_FORK_ADOPT_H
#define BRG_FORK_ADOPT_H

#include <stddef.h>
#include <stdint.h>

/* Room for as many descriptors as the hard limit allows: a template has a socket with each rank
 * process, and what one of them has; while a rank takes that over, numbers above the highest. The
 * rank has the limits of its rank process in the end. */
void adopt_widen(void);

/* Makes `from[i]` descriptor `to[i]` of this process, which then has these and no others up to
 * the highest of them; `*kept` is moved out of the way. 0 or -errno; -EBUSY: where libraries hold
 * files of their own (held.h). */
int adopt_descriptors(const int *from, const int32_t *to, uint32_t n, int *kept);

/* Makes a copy of the `n` strings at `text` the environment of this process; it stays for good. (In
 * memory without a file: of that alone /proc shows an environment.) NULL: no memory. */
char *adopt_environment(const char *text, size_t bytes, uint32_t n);

/* What /proc says the environment was: from here on `text`, or as much of it as fits where the
 * template's was. */
void adopt_names(char *text, size_t bytes);

#endif
