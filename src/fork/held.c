/* What libraries hold of their own files. See held.h. */
#include "fork/held.h"
#include "base/object.h"
#include "base/sys.h"

#include <errno.h>
#include <stdint.h>
#include <sys/stat.h>

_Static_assert(HELD_END - HELD_FROM == 64, "a bit each");
static uint64_t held;

struct own_file {
    const void *caller; /* code */
    int fd;
    int is; /* whether that is open of the caller's own file */
};

/* An interpreter opens thousands of files while a template warms, and its own file may lie on a
 * shared file system. So that is looked up only for a file that is long enough to be it. */
static int look(struct dl_phdr_info *object, size_t size, void *context)
{
    struct own_file *asked = context;
    const char *name = *object->dlpi_name ? object->dlpi_name : "/proc/self/exe";
    struct stat file, own;
    (void)size;
    if (!object_has(object, asked->caller))
        return 0;
    asked->is = sys_fstat(asked->fd, &file) == 0 && S_ISREG(file.st_mode) &&
                (uint64_t)file.st_size >= object_length(object) && sys_stat(name, &own) == 0 &&
                file.st_dev == own.st_dev && file.st_ino == own.st_ino;
    return 1;
}

static int is_own_file(int fd, const void *caller)
{
    struct own_file asked = {.caller = caller, .fd = fd};
    dl_iterate_phdr(look, &asked);
    return asked.is;
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
