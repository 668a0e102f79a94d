/* See devices.h. */
#include "stage/devices.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

/* Whether what is mounted numbers files as itself, and will still be there when they are used. */
static int numbers_files(const struct mount *m)
{
    static const char *const others[] = {"autofs", "btrfs", NULL};
    return m && mountinfo_number(m) && !text_is_one_of(m->type, others);
}

static int is_known(const struct brg_device *devices, uint32_t n, uint64_t image)
{
    while (n && devices[n - 1].image != image)
        n--;
    return n > 0;
}

/* Two numbers of the image that are one here: only the first, whose path is the higher, lies where
 * it did. */
static int is_taken(const struct brg_device *devices, uint32_t n, uint64_t here)
{
    while (n && devices[n - 1].here != here)
        n--;
    return n > 0;
}

uint32_t devices_find(const struct brg_index *x, const struct mountinfo *here,
                      struct brg_device devices[BRG_STATE_DEVICES])
{
    uint32_t n = 0, n_differ = 0;
    for (uint32_t i = 0; i < x->n_entries && n < BRG_STATE_DEVICES; i++) {
        const struct brg_entry *e = &brg_entries(x)[i];
        if (!(e->flags & BRG_COVERED) || !(e->flags & BRG_MOUNT_DEV) ||
            is_known(devices, n, e->dev))
            continue;
        const struct mount *m = mountinfo_of(here, brg_string(x, e->path), e->path.len);
        uint64_t number = numbers_files(m) ? mountinfo_number(m) : e->dev;
        devices[n].image = e->dev;
        devices[n].here = is_taken(devices, n, number) ? e->dev : number;
        n++;
    }
    for (uint32_t i = 0; i < n; i++)
        if (devices[i].image != devices[i].here)
            devices[n_differ++] = devices[i];
    return n_differ;
}

static uint32_t find_in(const void *index, size_t bytes, struct brg_device *devices)
{
    struct mountinfo here;
    const char *why;
    if (brg_index_check(index, bytes, &why) || mountinfo_read(&here, MOUNTINFO_HERE))
        return 0;
    uint32_t n = devices_find(index, &here, devices);
    mountinfo_free(&here);
    return n;
}

uint32_t devices_of_staged(int staged_fd, struct brg_device devices[BRG_STATE_DEVICES])
{
    struct stat st;
    uint32_t n = 0;
    int fd = openat(staged_fd, "index", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return 0;
    void *index = fstat(fd, &st) || st.st_size <= 0
                      ? MAP_FAILED
                      : mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (index == MAP_FAILED)
        return 0;
    n = find_in(index, (size_t)st.st_size, devices);
    munmap(index, (size_t)st.st_size);
    return n;
}
