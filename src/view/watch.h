/* The library that watches what modules do while they are imported; see docs/design/0023-fork.md.
 *
 * Only a trial for `--fork` preloads it, behind the library that records look-ups, whose records
 * it adds to: clock_gettime and its like are too hot for a hook in every rank. It keeps the rules
 * of hooks.h. What it cannot see: what the libc does for itself (the words of <err.h>, <error.h>),
 * `environ` read as a variable, instructions that tell the time or make random numbers.
 */
#ifndef BRG_VIEW_WATCH_H
#define BRG_VIEW_WATCH_H

#include "view/record.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <termios.h>
#include <time.h>
#include <wchar.h>

typedef void *thread_start(void *);

#define WATCH(type, name, parameters) \
    type watch_##name parameters __asm__(#name) __attribute__((visibility("default")));
#include "view/watch.def"

/* The definitions that the program would have got without us, or NULL. */
struct watched_calls {
#define WATCH(type, name, parameters) type(*name) parameters;
#include "view/watch.def"
};

/* All of them; looked up on the first call. */
const struct watched_calls *watch_real(void);

/* The caller does `what`, see record_event(). Keeps errno. */
void watch_note(const char *what, const char *detail);

#endif
