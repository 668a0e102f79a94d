/* The mounts that a process sees: mountinfo of proc(5). Reading it asks no file system. */
#ifndef BRG_BASE_MOUNTINFO_H
#define BRG_BASE_MOUNTINFO_H

#include <stddef.h>
#include <stdint.h>

#define MOUNTINFO_HERE "/proc/self/mountinfo"

struct mount {
    const char *device; /* "major:minor" */
    const char *root, *point, *type;
};

struct mountinfo {
    char *text; /* that the mounts point into */
    struct mount *mounts;
    size_t n;
};

/* Reads the table in the file `path`. 0, or -1 with *t empty. */
int mountinfo_read(struct mountinfo *t, const char *path);
void mountinfo_free(struct mountinfo *t);

/* Whether `path`, of n bytes, is `folder` or lies below it; both canonical. */
int mountinfo_is_in(const char *path, size_t n, const char *folder);

/* The mount that a canonical path lies on, or NULL: of several on one point, the last. */
const struct mount *mountinfo_of(const struct mountinfo *t, const char *path, size_t n);

/* The number of what is mounted, as st_dev has it on most file systems; 0 if it is not told. */
uint64_t mountinfo_number(const struct mount *m);

#endif
