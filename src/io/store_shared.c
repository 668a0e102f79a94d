/* See store.h. One file of plain bytes. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/io.h"
#include "io/store.h"

struct io_store {
    struct store_token token;
    int fd;
};

static int failed_at(struct brg_error *err, int code, const char *path, uint64_t offset,
                     const char *verb)
{
    brg_error_system(err, code, "cannot %s %s at byte %llu", verb, path,
                     (unsigned long long)offset);
    if (err) {
        err->offset = (int64_t)offset;
        snprintf(err->path, sizeof err->path, "%s", path);
    }
    return code;
}

/* The file's real name: where the last component is a symbolic link, what it leads to. */
static int resolve(const char *path, char *out, struct brg_error *err)
{
    char *real = realpath(path, NULL);
    int n = snprintf(out, STORE_PATH, "%s", real ? real : path);
    free(real);
    return n >= STORE_PATH - 64
               ? brg_error_set(err, -ENAMETOOLONG, "the path %.200s... is too long", path)
               : 0;
}

static int make_temporary(struct store_token *token, struct brg_error *err)
{
    const char *slash = strrchr(token->path, '/');
    int folder = slash ? (int)(slash - token->path) + 1 : 0;
    snprintf(token->temporary, sizeof token->temporary, "%.*s.%s.brg-%016llx", folder, token->path,
             token->path + folder, (unsigned long long)token->id);
    int fd = open(token->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return brg_error_system(err, -errno, "cannot create %s", token->temporary);
    struct stat old;
    if (stat(token->path, &old) == 0)
        fchmod(fd, old.st_mode & 07777);
    close(fd);
    return 0;
}

int store_prepare(const char *path, unsigned flags, const struct io_hints *hints,
                  struct store_token *token, struct brg_error *err)
{
    struct stat st;
    *token = (struct store_token){.flags = flags, .layout = hints->layout};
    int rc = resolve(path, token->path, err);
    if (rc)
        return rc;
    token->stripe_bytes = hints->stripe_bytes ? hints->stripe_bytes : 1u << 20;
    int there = stat(token->path, &st) == 0;
    if (flags & BRG_READ) {
        snprintf(token->temporary, sizeof token->temporary, "%s", token->path);
        int fd = open(token->path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return brg_error_system(err, -errno, "cannot open %s", path);
        close(fd);
        token->size = (uint64_t)st.st_size;
        return 0;
    }
    if (there && (flags & BRG_EXCLUSIVE))
        return brg_error_system(err, -EEXIST, "cannot create %s", path);
    if (getrandom(&token->id, sizeof token->id, 0) != sizeof token->id)
        return brg_error_system(err, -errno, "no random number for a temporary name");
    return make_temporary(token, err);
}

int store_open(const struct store_token *token, const struct io_hints *hints, uint32_t rank,
               struct io_store **store, struct brg_error *err)
{
    (void)hints, (void)rank;
    struct io_store *s = calloc(1, sizeof *s);
    if (!s)
        return brg_error_set(err, -ENOMEM, "no memory for a file");
    s->token = *token;
    s->fd = -1;
    *store = s;
    return 0;
}

void store_close(struct io_store *s)
{
    if (s->fd >= 0)
        close(s->fd);
    free(s);
}

static int need_file(struct io_store *s, struct brg_error *err)
{
    if (s->fd >= 0)
        return 0;
    s->fd = open(s->token.temporary, (s->token.flags & BRG_READ ? O_RDONLY : O_RDWR) | O_CLOEXEC);
    return s->fd < 0 ? failed_at(err, -errno, s->token.temporary, 0, "open") : 0;
}

int store_write(struct io_store *s, const void *buf, size_t bytes, uint64_t offset,
                struct brg_error *err)
{
    size_t done = 0;
    int rc = need_file(s, err);
    if (rc)
        return rc;
    rc = brg_io_pwrite(s->fd, buf, bytes, offset, &done);
    return rc ? failed_at(err, rc, s->token.path, offset + done, "write") : 0;
}

int store_read(struct io_store *s, void *buf, size_t bytes, uint64_t offset, size_t *got,
               struct brg_error *err)
{
    int rc = need_file(s, err);
    if (rc)
        return rc;
    ssize_t n = brg_io_pread(s->fd, buf, bytes, offset);
    if (n < 0)
        return failed_at(err, (int)n, s->token.path, offset, "read");
    *got = (size_t)n;
    return 0;
}

int store_flush(struct io_store *s, struct brg_error *err)
{
    if (s->fd >= 0 && fsync(s->fd) != 0)
        return failed_at(err, -errno, s->token.path, 0, "sync");
    return 0;
}

int store_publish(struct io_store *s, uint64_t size, struct brg_error *err)
{
    if (truncate(s->token.temporary, (off_t)size) != 0)
        return failed_at(err, -errno, s->token.path, size, "set the size of");
    if (rename(s->token.temporary, s->token.path) != 0)
        return failed_at(err, -errno, s->token.path, 0, "publish");
    int rc = brg_io_sync_folder_of(s->token.path);
    return rc ? failed_at(err, rc, s->token.path, 0, "sync the folder of") : 0;
}

void store_discard(struct io_store *s)
{
    if (!(s->token.flags & BRG_READ))
        unlink(s->token.temporary);
}
