/* See place.h. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "store/place.h"

/* Of a partition it is its disk that says so. */
static int turns(uint64_t device)
{
    static const char *const places[] = {"", "../"};
    char path[96], said = '0';
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "/sys/dev/block/%u:%u/%squeue/rotational", major(device),
                 minor(device), places[i]);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue;
        ssize_t n = read(fd, &said, 1);
        close(fd);
        return n == 1 && said == '1';
    }
    return 0;
}

/* A process reads from few disks. */
int place_one_stream(uint64_t device)
{
    static _Thread_local uint64_t known_device;
    static _Thread_local int known;
    if (known_device != device) {
        known = turns(device);
        known_device = device;
    }
    return known;
}
