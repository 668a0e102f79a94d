/* See parts.h: from the parts of all ranks to one index. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "store/parts.h"
#include "store/store_io.h"

/* "000012" and what follows it, or -1. */
static int64_t number_of(const char *name, const char **suffix)
{
    char *end;
    if (!isdigit((unsigned char)*name))
        return -1;
    int64_t number = strtoll(name, &end, 10);
    *suffix = end;
    return number;
}

static int is_ours(const char *suffix)
{
    return !*suffix || !strcmp(suffix, ".log") || !strcmp(suffix, ".sums");
}

int parts_remove(const char *folder)
{
    const char *suffix;
    struct dirent *entry;
    DIR *dir = opendir(folder);
    int first = dir ? 0 : -errno;
    while (dir && (entry = readdir(dir)))
        if (number_of(entry->d_name, &suffix) >= 0 && is_ours(suffix) &&
            unlinkat(dirfd(dir), entry->d_name, 0) && !first)
            first = -errno;
    if (dir)
        closedir(dir);
    if (rmdir(folder) == 0 || errno == ENOENT)
        return 0;
    return first ? first : -errno;
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* 8 bytes a part. */
static int list(const char *folder, uint64_t **numbers, uint32_t *n)
{
    uint32_t room = 0;
    const char *suffix;
    struct dirent *entry;
    DIR *dir = opendir(folder);
    int rc = dir ? 0 : -errno;
    *numbers = NULL;
    *n = 0;
    while (!rc && (entry = readdir(dir))) {
        int64_t number = number_of(entry->d_name, &suffix);
        if (number < 0 || *suffix)
            continue;
        if (*n == room) {
            room = room ? 2 * room : 64;
            uint64_t *more = realloc(*numbers, room * sizeof **numbers);
            rc = more ? 0 : -ENOMEM;
            *numbers = more ? more : *numbers;
        }
        if (!rc)
            (*numbers)[(*n)++] = (uint64_t)number;
    }
    if (dir)
        closedir(dir);
    if (*n)
        qsort(*numbers, *n, sizeof **numbers, ascending);
    return rc;
}

static int part_of(const char *folder, uint64_t number, struct parts_part *part, uint64_t first)
{
    char name[PARTS_NAME];
    struct stat data, sums;
    parts_name(name, folder, number, "");
    int rc = store_io_stat(-1, name, &data);
    parts_name(name, folder, number, ".sums");
    rc = rc ? rc : store_io_stat(-1, name, &sums);
    if (!rc)
        *part = (struct parts_part){number, (uint64_t)data.st_size, first,
                                    (uint64_t)sums.st_size / sizeof(uint64_t)};
    return rc;
}

static int put_sums(const char *folder, uint64_t number, struct parts_build *build)
{
    char name[PARTS_NAME], bytes[4096];
    uint64_t at = 0;
    int rc = 0;
    parts_name(name, folder, number, ".sums");
    int fd = store_io_open(name, O_RDONLY, 0);
    ssize_t got = fd < 0 ? fd : 1;
    while (!rc && got > 0) {
        got = store_io_read(fd, bytes, sizeof bytes, at);
        rc = got > 0 ? parts_build_put(build, bytes, (size_t)got) : 0;
        at += got > 0 ? (uint64_t)got : 0;
    }
    if (fd >= 0)
        close(fd);
    return rc ? rc : (int)got;
}

static int put_parts(const char *folder, const uint64_t *numbers, uint32_t n,
                     struct parts_build *build, struct parts_head *head)
{
    int rc = 0;
    for (uint32_t i = 0; !rc && i < n; i++) {
        struct parts_part part;
        rc = part_of(folder, numbers[i], &part, head->n_sums);
        rc = rc ? rc : parts_build_put(build, &part, sizeof part);
        head->n_sums += rc ? 0 : part.n_sums;
    }
    for (uint32_t i = 0; !rc && i < n; i++)
        rc = put_sums(folder, numbers[i], build);
    head->n_parts = n;
    return rc;
}

static void remove_logs(const char *folder, const uint64_t *numbers, uint32_t n)
{
    char name[PARTS_NAME];
    for (uint32_t i = 0; i < n; i++) {
        parts_name(name, folder, numbers[i], ".log");
        unlink(name);
        parts_name(name, folder, numbers[i], ".sums");
        unlink(name);
    }
}

int parts_make_index(const char *folder, int fd, struct parts_head *head, size_t memory)
{
    struct parts_build *build = malloc(sizeof *build);
    uint64_t *numbers = NULL;
    uint32_t n = 0;
    if (!build)
        return -ENOMEM;
    parts_build_start(build, fd);
    int rc = list(folder, &numbers, &n);
    struct parts_logs logs = {folder, numbers, n};
    rc = rc ? rc : parts_resolve(&logs, head->size, memory, build);
    rc = rc ? rc : put_parts(folder, numbers, n, build, head);
    rc = rc ? rc : parts_build_end(build, head);
    if (!rc)
        remove_logs(folder, numbers, n);
    parts_build_free(build);
    free(build);
    free(numbers);
    return rc;
}
