/* See check.h. The file is read once, whatever the sections are. */
#include "store/check.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/error.h"
#include "base/io.h"
#include "store/check_inside.h"
#include "store/store_io.h"
#include "store/xxh3.h"

#define CHUNK (1u << 20)

/* The file against one section, as its bytes come. */
struct against {
    uint32_t section;
    uint64_t n_bad, bad[CHECK_LISTED];
    int zeros; /* of the block so far */
    XXH3_state_t state;
};

static int end_block(const struct sums_file *file, struct against *a, uint64_t block)
{
    uint64_t known;
    int rc = sums_file_get(file, a->section, block, 1, &known);
    if (rc)
        return rc;
    if (known ? known != xxh3_kept(XXH3_64bits_digest(&a->state)) : !a->zeros) {
        if (a->n_bad < CHECK_LISTED)
            a->bad[a->n_bad] = block;
        a->n_bad++;
    }
    return 0;
}

static int take(const struct sums_file *file, struct against *a, const char *bytes, size_t n,
                uint64_t offset)
{
    const struct sums_section *section = &file->section[a->section];
    int rc = 0;
    while (!rc && n) {
        uint64_t block = offset / section->block_bytes, end = (block + 1) * section->block_bytes;
        size_t some = n < end - offset ? n : (size_t)(end - offset);
        if (offset % section->block_bytes == 0) {
            XXH3_64bits_reset(&a->state);
            a->zeros = 1;
        }
        xxh3_update(&a->state, bytes, some);
        a->zeros = a->zeros && !bytes[0] && !memcmp(bytes, bytes + 1, some - 1);
        offset += some;
        bytes += some;
        n -= some;
        if (offset == end || offset == section->size)
            rc = end_block(file, a, block);
    }
    return rc;
}

static void fill_report(struct check_report *r, const struct sums_section *section,
                        const struct against *a, const char *path)
{
    r->block_bytes = section->block_bytes;
    r->n_blocks = section->n_blocks;
    r->n_bad = a->n_bad;
    for (uint64_t i = 0; i < a->n_bad && i < CHECK_LISTED; i++) {
        uint64_t at = a->bad[i] * section->block_bytes, left = section->size - at;
        struct check_bad *bad = &r->bad[i];
        bad->offset = at;
        bad->bytes = left < section->block_bytes ? left : section->block_bytes;
        snprintf(bad->path, sizeof bad->path, "%s", path);
        snprintf(bad->what, sizeof bad->what, "its checksum differs");
    }
}

/* Every byte of fd past all of n sections; the best of them is the file's. */
static int check_bytes(int fd, const char *path, const struct sums_file *file, struct against *all,
                       uint32_t n, check_progress *progress, void *context, struct check_report *r)
{
    char *chunk = malloc(CHUNK);
    int rc = chunk ? 0 : -ENOMEM;
    for (uint64_t at = 0; !rc && at < r->size;) {
        size_t want = r->size - at < CHUNK ? (size_t)(r->size - at) : CHUNK;
        ssize_t got = store_io_read(fd, chunk, want, at);
        if (got < (ssize_t)want)
            rc = got < 0 ? (int)got : -EIO; /* it became shorter meanwhile */
        for (uint32_t i = 0; !rc && i < n; i++)
            rc = take(file, &all[i], chunk, want, at);
        at += want;
        r->checked = at;
        if (progress && !rc)
            progress(context, at, r->size);
    }
    free(chunk);
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (all[i].n_bad < all[best].n_bad)
            best = i;
    if (!rc)
        fill_report(r, &file->section[all[best].section], &all[best], path);
    return rc;
}

static int no_section(const struct sums_file *file, const char *path, uint64_t size,
                      struct brg_error *err)
{
    brg_error_set(err, -EBADMSG, "%s has %llu bytes, and its checksums are of a file of %llu", path,
                  (unsigned long long)size,
                  (unsigned long long)(file->n ? file->section[0].size : 0));
    if (err)
        snprintf(err->path, sizeof err->path, "%s", path);
    return -EBADMSG;
}

static int check_shared(int fd, const char *path, check_progress *progress, void *context,
                        struct check_report *r, struct brg_error *err)
{
    char sums[STORE_NAME_BYTES];
    struct sums_file file;
    struct against *all = calloc(SUMS_SECTIONS, sizeof *all);
    uint32_t n = 0;
    if (!all)
        return brg_error_set(err, -ENOMEM, "no memory to verify %s", path);
    store_name(sums, path, ".sums");
    int rc = sums_file_open(&file, sums, err);
    if (rc == -ENOENT || rc == -EMEDIUMTYPE)
        rc = brg_error_set(err, -ENODATA, "%s has no checksums: there is no %s", path, sums);
    for (uint32_t i = 0; !rc && i < file.n; i++)
        if (file.section[i].size == r->size)
            all[n++].section = i;
    if (!rc && !n)
        rc = no_section(&file, path, r->size, err);
    else if (!rc) {
        rc = check_bytes(fd, path, &file, all, n, progress, context, r);
        if (rc)
            store_failed(err, rc, path, (int64_t)r->checked, "verify");
    }
    sums_file_close(&file);
    free(all);
    return rc;
}

int check_file(const char *path, check_progress *progress, void *context, struct check_report *r,
               struct brg_error *err)
{
    char real[PATH_MAX];
    struct stat st;
    memset(r, 0, sizeof *r);
    int fd = realpath(path, real) ? store_io_open(real, O_RDONLY, 0) : -errno;
    if (fd < 0 || fstat(fd, &st))
        return store_failed(err, fd < 0 ? fd : -errno, path, -1, "open");
    r->size = (uint64_t)st.st_size;
    int rc = strlen(real) < STORE_PATH - 64 ? 0 : -ENAMETOOLONG;
    if (rc)
        store_failed(err, rc, path, -1, "verify");
    if (!rc) {
        rc = check_parts(real, progress, context, r, err);
        if (rc == -EMEDIUMTYPE)
            rc = check_shared(fd, real, progress, context, r, err);
    }
    close(fd);
    return rc;
}
