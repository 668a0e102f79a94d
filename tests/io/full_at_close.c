/* A file system that tells only when a file is closed that its bytes have no room, as NFS does: to
 * be preloaded. One rank, FULL_RANK, hears it of files that are being written. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_me(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK"};
    const char *full = getenv("FULL_RANK"), *me = NULL;
    for (unsigned i = 0; i < 2 && !me; i++)
        me = getenv(names[i]);
    return full && me && strcmp(full, me) == 0;
}

int close(int fd)
{
    char link[64], path[PATH_MAX] = "";
    int (*next)(int);
    *(void **)&next = dlsym(RTLD_NEXT, "close");
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = is_me() ? readlink(link, path, sizeof path - 1) : 0;
    int full = n > 0 && strstr(path, ".brg-") && !strstr(path, ".sums") && !strstr(path, ".blocks");
    if (next(fd))
        return -1;
    errno = full ? EDQUOT : errno;
    return full ? -1 : 0;
}
