/* What libraries hold of their own files. See held.h. */
#include "fork/held.h"
#include "base/sys.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <sys/stat.h>

_Static_assert(HELD_END - HELD_FROM == 64, "a bit each");
static uint64_t held;

static int is_own_file(int fd, const void *caller)
{
    Dl_info object;
    struct stat file, own;
    return dladdr(caller, &object) && object.dli_fname && sys_fstat(fd, &file) == 0 &&
           sys_stat(object.dli_fname, &own) == 0 && S_ISREG(file.st_mode) &&
           file.st_dev == own.st_dev && file.st_ino == own.st_ino;
}

int held_apart(int fd, const void *caller)
{
    int saved = errno, apart = -1;
    if (is_own_file(fd, caller))
        apart = sys_fcntl(fd, F_DUPFD_CLOEXEC, HELD_FROM);
    errno = saved;
    if (apart < 0)
        return fd;
    if (apart >= HELD_END) {
        sys_close(apart);
        return fd;
    }
    sys_close(fd);
    held |= UINT64_C(1) << (apart - HELD_FROM);
    return apart;
}

int held_has(int fd)
{
    return fd >= HELD_FROM && fd < HELD_END && held >> (fd - HELD_FROM) & 1;
}

int held_any(void)
{
    return held != 0;
}
