/* Ranks open a file to read it when they first do so, by its name, which may have become another
 * file's by then. All read the one that rank 0 opened: where its name has gone, by rank 0's own
 * descriptor, which ranks of its node can reach. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "store/store_inside.h"
#include "store/store_io.h"

/* The number of a file is the same on all nodes, but with some clients in user space (SSHFS), which
 * make up their own: then files differ that were not written at the same time. What is asked of the
 * servers there, others need not ask. */
static int is_same(const struct store_token *token, int fd)
{
    struct stat st;
    if (fstat(fd, &st) == 0 && st.st_ino == token->inode)
        return 1;
    return store_io_stat(fd, NULL, &st) == 0 && (uint64_t)st.st_size == token->size &&
           store_modified_ns(&st) == token->modified_ns;
}

/* Looked at before it is opened: on another node a process of that number is somebody else's. */
static int open_of_rank_0(const struct store_token *token)
{
    char path[48];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", token->process, token->file);
    if (stat(path, &st) || !S_ISREG(st.st_mode) || (uint64_t)st.st_dev != token->device ||
        st.st_ino != token->inode)
        return -ESTALE;
    return store_io_open(path, O_RDONLY, 0);
}

int store_open_same(const struct store_token *token)
{
    int fd = store_io_open(token->path, O_RDONLY, 0);
    if (fd < 0 ? fd != -ENOENT : is_same(token, fd))
        return fd;
    if (fd >= 0)
        close(fd);
    fd = open_of_rank_0(token);
    if (fd < 0 || is_same(token, fd))
        return fd < 0 ? -ESTALE : fd;
    close(fd);
    return -ESTALE;
}

int store_is_another(const struct store_token *token, struct brg_error *err)
{
    brg_error_set(err, -ESTALE,
                  "%s was replaced or removed after it was opened, and before this rank read from "
                  "it: open it once more",
                  token->path);
    if (err)
        snprintf(err->path, sizeof err->path, "%s", token->path);
    return -ESTALE;
}
