/* What a process sees. See root.h. */
#include "base/root.h"
#include "base/sys.h"
#include "base/text.h"

#include <errno.h>

/* The device number as `struct stat` has it. */
static uint64_t device(uint64_t major, uint64_t minor)
{
    return (minor & 0xff) | (major & 0xfff) << 8 | (minor & ~UINT64_C(0xff)) << 12 |
           (major & ~UINT64_C(0xfff)) << 32;
}

/* "/" as the kernel has it in memory: the root may itself lie on a shared file system. */
static int stat_root(struct brg_root *here)
{
    struct statx stx;
    struct stat st;
    long err =
        sys_call(SYS_statx, AT_FDCWD, (long)"/", AT_STATX_DONT_SYNC, STATX_INO, (long)&stx, 0);
    if (err == 0) {
        here->dev = device(stx.stx_dev_major, stx.stx_dev_minor);
        here->ino = stx.stx_ino;
    } else if (err == -ENOSYS) { /* before Linux 4.11 */
        err = sys_stat("/", &st);
        here->dev = err ? 0 : st.st_dev;
        here->ino = err ? 0 : st.st_ino;
    }
    return (int)err;
}

int root_here(struct brg_root *here)
{
    struct stat st;
    int err = sys_stat("/proc/self/ns/mnt", &st);
    *here = (struct brg_root){err ? 0 : st.st_ino, 0, 0};
    return err ? err : stat_root(here);
}

int root_same(const struct brg_root *a, const struct brg_root *b)
{
    return a->mounts == b->mounts && a->dev == b->dev && a->ino == b->ino;
}

void root_words(const struct brg_root *root, char *buf)
{
    struct text t = text_in(buf, ROOT_WORDS);
    text_number(&t, root->mounts, 10);
    text_add(&t, ".");
    text_number(&t, root->dev, 10);
    text_add(&t, ".");
    text_number(&t, root->ino, 10);
}

int root_is_away(const char *words)
{
    char now[ROOT_WORDS];
    struct brg_root here;
    if (!words || !*words)
        return 0;
    if (root_here(&here) < 0)
        return 1; /* it was known where it was: this is another place */
    root_words(&here, now);
    return !text_same(now, words);
}

int root_leave_mounts(int dirfd, const char *name)
{
    char piece[4096];
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int to = (int)sys_call(SYS_openat, dirfd, (long)name, flags, 0644, 0, 0);
    if (to < 0)
        return to;
    int from = sys_open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC, 0);
    long n = from;
    while (n >= 0 && (n = sys_read(from, piece, sizeof piece)) > 0)
        n = sys_write(to, piece, (size_t)n) == n ? n : -EIO;
    if (from >= 0)
        sys_close(from);
    sys_close(to);
    return n < 0 ? (int)n : 0;
}
