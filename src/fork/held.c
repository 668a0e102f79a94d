/* What libraries hold of their own files. See held.h. */
#include "fork/held.h"
#include "base/sys.h"

#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <sys/stat.h>

_Static_assert(HELD_END - HELD_FROM == 64, "a bit each");
static uint64_t held;

/* The object whose code is at `code`, and how long its file is at least. */
struct object {
    uintptr_t code;
    const char *path;
    off_t length;
};

static int look(struct dl_phdr_info *one, size_t size, void *context)
{
    struct object *found = context;
    off_t length = 0;
    int has_code = 0;
    (void)size;
    for (int i = 0; i < one->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = one->dlpi_phdr + i;
        if (part->p_type != PT_LOAD)
            continue;
        has_code |= found->code - (one->dlpi_addr + part->p_vaddr) < part->p_memsz;
        if (length < (off_t)(part->p_offset + part->p_filesz))
            length = (off_t)(part->p_offset + part->p_filesz);
    }
    if (!has_code)
        return 0;
    found->path = *one->dlpi_name ? one->dlpi_name : "/proc/self/exe"; /* the program has no name */
    found->length = length;
    return 1;
}

/* An interpreter opens thousands of files while a template warms, and its own file may lie on a
 * shared file system. So that is looked up only for a file that is long enough to be it. */
static int is_own_file(int fd, const void *caller)
{
    struct object object = {.code = (uintptr_t)caller};
    struct stat file, own;
    return dl_iterate_phdr(look, &object) && sys_fstat(fd, &file) == 0 && S_ISREG(file.st_mode) &&
           file.st_size >= object.length && sys_stat(object.path, &own) == 0 &&
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
