/* Reading with checksums.
 *
 * A file matches its sums if it matches one section wholly: a section that once differed is no
 * candidate any more, and when none is left, what was read is wrong. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/io.h"
#include "store/store_inside.h"
#include "store/store_io.h"
#include "store/xxh3.h"

int store_own_section(const struct sums_file *file, uint64_t inode, uint64_t size)
{
    for (uint32_t i = 0; i < file->n; i++)
        if (file->section[i].inode == inode && file->section[i].size == size)
            return (int)i;
    return -1;
}

/* A file without checksums is read as it is: that was its writer's choice. */
static int load(struct io_store *s, struct brg_error *err)
{
    char path[STORE_NAME_BYTES];
    store_name(path, s->token.path, ".sums");
    s->known = malloc(sizeof *s->known);
    if (!s->known)
        return brg_error_set(err, -ENOMEM, "no memory for checksums");
    struct brg_error found;
    int rc = sums_file_open(s->known, path, &found);
    if (rc == -ENOENT || rc == -EMEDIUMTYPE) {
        s->verify = 0;
        return 0;
    }
    if (rc && err)
        *err = found;
    for (uint32_t i = 0; !rc && i < s->known->n; i++)
        if (s->known->section[i].size == s->token.size)
            s->candidates |= 1u << i;
    return rc;
}

/* The sum of bytes [from, to) of the file, of which [offset, offset + bytes) are in buf. */
static int sum_block(struct io_store *s, const char *buf, size_t bytes, uint64_t offset,
                     uint64_t from, uint64_t to, uint64_t *sum, int *zeros)
{
    char piece[16 << 10];
    XXH3_state_t state;
    *zeros = 1;
    XXH3_64bits_reset(&state);
    while (from < to) {
        size_t n = to - from < sizeof piece ? (size_t)(to - from) : sizeof piece;
        const char *at = piece;
        if (from >= offset && from < offset + bytes) {
            at = buf + (from - offset);
            if (n > offset + bytes - from)
                n = (size_t)(offset + bytes - from);
        } else {
            if (from < offset && n > offset - from)
                n = (size_t)(offset - from);
            ssize_t got = store_io_read(s->fd, piece, n, from);
            if (got < (ssize_t)n)
                return got < 0 ? (int)got : -EIO;
        }
        xxh3_update(&state, at, n);
        *zeros = *zeros && at[0] == 0 && memcmp(at, at + 1, n - 1) == 0;
        from += n;
    }
    *sum = xxh3_kept(XXH3_64bits_digest(&state));
    return 0;
}

static int check_section(struct io_store *s, uint32_t i, const void *buf, size_t bytes,
                         uint64_t offset, uint64_t *bad)
{
    const struct sums_section *section = &s->known->section[i];
    uint64_t block = section->block_bytes, end = offset + bytes;
    for (uint64_t b = offset / block; b * block < end; b++) {
        uint64_t to = (b + 1) * block < section->size ? (b + 1) * block : section->size;
        uint64_t known, sum;
        int zeros;
        int rc = sums_file_get(s->known, i, b, 1, &known);
        if (!rc)
            rc = sum_block(s, buf, bytes, offset, b * block, to, &sum, &zeros);
        *bad = b * block;
        if (rc)
            return rc;
        if (known ? known != sum : !zeros)
            return -EBADMSG;
    }
    return 0;
}

int store_check(struct io_store *s, const void *buf, size_t bytes, uint64_t offset,
                struct brg_error *err)
{
    uint64_t bad = offset;
    int rc = s->known ? 0 : load(s, err);
    if (rc || !s->verify || !bytes)
        return rc;
    unsigned left = 0;
    for (uint32_t i = 0; i < s->known->n; i++) {
        if (!(s->candidates & 1u << i))
            continue;
        rc = check_section(s, i, buf, bytes, offset, &bad);
        if (rc && rc != -EBADMSG)
            return store_failed(err, rc, s->token.path, (int64_t)bad, "verify");
        left |= rc ? 0 : 1u << i;
    }
    s->candidates = left;
    if (left)
        return 0;
    brg_error_set(err, -EBADMSG, "%s does not match its checksums in the block at byte %llu",
                  s->token.path, (unsigned long long)bad);
    if (err) {
        err->offset = (int64_t)bad;
        snprintf(err->path, sizeof err->path, "%s", s->token.path);
    }
    return -EBADMSG;
}
