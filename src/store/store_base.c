/* The temporary file that a new one is written to, .NAME.brg-ID. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/thread.h"
#include "store/place.h"
#include "store/store_inside.h"
#include "store/store_io.h"

int store_made_flags(const struct store_token *token, const struct io_hints *hints)
{
    const char *slash = strrchr(token->path, '/');
    char folder[STORE_PATH];
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - token->path) + 1, token->path);
    return O_RDWR | O_CREAT | place_open_flags(folder, hints);
}

static int choose_name(struct store_token *token, struct brg_error *err)
{
    const char *slash = strrchr(token->path, '/');
    uint32_t random;
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        return store_failed(err, -errno, token->path, -1, "find a temporary name for");
    token->id = (uint64_t)store_host() << 32 | random;
    snprintf(token->base, sizeof token->base, "%.*s.%.200s.brg-%016llx",
             (int)(slash - token->path) + 1, token->path, slash + 1, (unsigned long long)token->id);
    return 0;
}

/* A lock says that the job lives: another may remove what nobody holds. Where locks do not work,
 * nothing is removed. -EEXIST: another name must be found. */
static int make(struct store_token *token, int flags)
{
    struct stat st;
    int fd = store_io_open(token->base, flags, 0666);
    if (fd < 0)
        return fd;
    flock(fd, LOCK_EX | LOCK_NB);
    if (fstat(fd, &st) == 0 && st.st_nlink) {
        token->lock = fd;
        token->mode = (int32_t)(st.st_mode & 07777);
        return 0;
    }
    close(fd);
    return -EEXIST; /* swept away before it was locked */
}

/* What dead jobs left, which goes away; that what is made meanwhile stays, its name says. */
struct sweeping {
    const struct store_token *token;
    char base[STORE_PATH];
    int is_free;
};

static void sweep(void *sweeping)
{
    struct sweeping *s = sweeping;
    s->is_free = store_sweep(s->token->path, store_host(), s->base);
}

int store_make_base(struct store_token *token, const struct io_hints *hints, int *is_free,
                    struct brg_error *err)
{
    struct sweeping s = {.token = token};
    struct brg_beside beside;
    int flags = O_EXCL | store_made_flags(token, hints), rc = choose_name(token, err);
    if (rc)
        return rc;
    memcpy(s.base, token->base, sizeof s.base);
    brg_beside_begin(&beside, store_is_slow(token), sweep, &s);
    rc = make(token, flags);
    brg_beside_end(&beside);
    *is_free = s.is_free;
    for (int tries = 1; rc == -EEXIST && tries < 100; tries++) {
        int named = choose_name(token, err);
        if (named)
            return named;
        rc = make(token, flags);
    }
    return !rc ? 0
               : store_failed(err, rc, token->path, -1,
                              rc == -EEXIST ? "find a temporary name for"
                                            : "create a temporary file beside");
}
