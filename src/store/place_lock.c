/* See place.h. MooseFS (and what descends from it) keeps files in chunks of 64 MiB, and a client
 * that writes to one has it to itself until its bytes have arrived (MFSCHUNKSIZE, and the locked
 * chunks of its master): four nodes that each wrote a quarter of 48 MiB took twice as long as one
 * that wrote it all (docs/design/0014-laminar.md). */
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "store/place.h"

#define MOOSEFS_CHUNK (64u << 20)

uint64_t place_lock_unit(const char *line, uint64_t *device)
{
    unsigned major, minor;
    char type[64], source[256];
    const char *rest = strstr(line, " - ");
    *device = 0;
    if (!rest || sscanf(line, "%*u %*u %u:%u", &major, &minor) != 2 ||
        sscanf(rest, " - %63s %255s", type, source) != 2)
        return 0;
    *device = makedev(major, minor);
    int is_moosefs = strcmp(type, "fuse.mfs") == 0 || strcmp(type, "fuse.moosefs") == 0 ||
                     (strcmp(type, "fuse") == 0 &&
                      (strncmp(source, "mfs\\043", 7) == 0 || strncmp(source, "mfs#", 4) == 0));
    return is_moosefs ? MOOSEFS_CHUNK : 0;
}

/* The mounts of a process seldom change. */
uint64_t place_lock_bytes(uint64_t device)
{
    static _Thread_local uint64_t known_device, known_bytes;
    char line[4096];
    if (known_device == device)
        return known_bytes;
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    known_bytes = 0;
    while (mounts && fgets(line, sizeof line, mounts)) {
        uint64_t of, bytes = place_lock_unit(line, &of);
        if (of == device)
            known_bytes = bytes;
    }
    known_device = mounts ? device : 0;
    if (mounts)
        fclose(mounts);
    return known_bytes;
}
