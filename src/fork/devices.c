/* Devices that are denied. See devices.h. */
#include "fork/devices.h"
#include "base/sys.h"
#include "base/text.h"
#include "image/index.h"

#include <dirent.h>
#include <unistd.h>

enum {
    PIECE = 16 << 10
};

/* Where accelerators and networks have theirs. */
static const char *const folders[] = {"/dev/", "/dev/accel/", "/dev/dri/", "/dev/infiniband/",
                                      "/dev/nvidia-caps/"};

/* What the device of that name adds to the digest: 0 if it may be used. Not opened, which drivers
 * may mind: access(2) asks the control group, too. */
static uint64_t digest_of(const char *folder, const char *name)
{
    char path[300];
    struct text t = text_in(path, sizeof path);
    text_add(&t, folder);
    text_add(&t, name);
    return sys_access(path, R_OK | W_OK) == 0 ? 0 : brg_hash(path, t.len, BRG_HASH_SEED);
}

/* A sum: in whatever order they are listed. */
static uint64_t denied_in(const char *folder)
{
    _Alignas(struct dirent64) char piece[PIECE];
    const struct dirent64 *entry;
    uint64_t sum = 0;
    long n;
    int fd = sys_open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return 0;
    while ((n = sys_call(SYS_getdents64, fd, (long)piece, sizeof piece, 0, 0, 0)) > 0)
        for (long at = 0; at < n; at += entry->d_reclen) {
            entry = (const struct dirent64 *)(piece + at);
            sum += entry->d_type == DT_CHR ? digest_of(folder, entry->d_name) : 0;
        }
    sys_close(fd);
    return sum;
}

uint64_t devices_denied(void)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        sum += denied_in(folders[i]);
    return sum;
}
