/* What the hooked functions share: their declarations and the next definitions.
 *
 * The rules of this hostile ground are those of view/hooks.h: a hook is called before any
 * constructor has run, from signal handlers, between vfork and exec, from threads with small
 * stacks; it leaves errno as the function itself would. What is not buffered costs one look into
 * an array.
 */
#ifndef BRG_BUFFER_HOOKS_H
#define BRG_BUFFER_HOOKS_H

#include "buffer/file.h"

#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <utime.h>

typedef void brigade_handler(int);

#define BRG_HOOKS "buffer/hooks.def"
#include "base/real_calls.h"

/* Whether a call on fd concerns us. */
#define IS_OURS(fd) (__builtin_expect(desc_of(fd) != NULL, 0))

/* Sets errno of a result -errno. */
static inline long told(long result)
{
    if (result >= 0)
        return result;
    errno = (int)-result;
    return -1;
}

/* A file is left to the kernel: 0, or -1 with errno set if an error was still to be told. */
static inline int left(int fd, const char *why)
{
    return IS_OURS(fd) ? (int)told(file_drop(fd, why)) : 0;
}

/* The same around a call that cannot tell an error: it is still owed. */
static inline void left_untold(int fd, const char *why)
{
    if (IS_OURS(fd))
        file_drop_untold(fd, why);
}

/* The real calls are known now: what is not ours goes to them without a look. See hooks_data.c. */
void data_start(void);

/* Before a call that closes descriptors, or makes `to` another one of `fd`: see hooks_fd.c. */
void fd_before_close_range(unsigned first, unsigned last, int flags);
void fd_before_onto(int fd, int to);

/* glibc's FILE reaches read and write by these; see stdio.c. */
extern int stdio_hooked;
void stdio_start(void);

#endif
