/* See sums_file.h. */
#include "store/sums_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/error.h"
#include "base/io.h"
#include "store/store_io.h"
#include "store/xxh3.h"

#define BATCH 1024u /* sums at a time */

uint64_t sums_of(const void *bytes, size_t n)
{
    return xxh3_kept(xxh3_sum(bytes, n));
}

static int damaged(struct brg_error *err, const char *path, uint64_t offset, const char *what)
{
    brg_error_set(err, -EBADMSG, "%s is damaged at byte %llu: %s", path, (unsigned long long)offset,
                  what);
    if (err) {
        err->offset = (int64_t)offset;
        snprintf(err->path, sizeof err->path, "%s", path);
    }
    return -EBADMSG;
}

static int check_section(struct sums_file *f, uint32_t i, const char *path, struct brg_error *err)
{
    const struct sums_section *s = &f->section[i];
    uint64_t sums[BATCH];
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, s, offsetof(struct sums_section, checksum));
    for (uint64_t first = 0; first < s->n_blocks;) {
        size_t n = s->n_blocks - first < BATCH ? (size_t)(s->n_blocks - first) : BATCH;
        int rc = sums_file_get(f, i, first, n, sums);
        if (rc)
            return store_failed(err, rc, path, -1, "read");
        XXH3_64bits_update(&state, sums, n * sizeof *sums);
        first += n;
    }
    return XXH3_64bits_digest(&state) == s->checksum
               ? 0
               : damaged(err, path, f->at[i] - sizeof *s, "the checksum of this section differs");
}

static int read_sections(struct sums_file *f, const struct sums_head *head, uint64_t bytes,
                         const char *path, struct brg_error *err)
{
    uint64_t at = sizeof *head;
    int rc = 0;
    for (uint32_t i = 0; !rc && i < head->n_sections; i++) {
        struct sums_section *s = &f->section[i];
        ssize_t got = store_io_read(f->fd, s, sizeof *s, at);
        if (got < 0)
            return store_failed(err, (int)got, path, -1, "read");
        if (got < (ssize_t)sizeof *s || s->n_blocks > (bytes - at - sizeof *s) / 8)
            return damaged(err, path, at, "it ends too early");
        if (!s->block_bytes || (s->size + s->block_bytes - 1) / s->block_bytes != s->n_blocks)
            return damaged(err, path, at, "size and number of blocks differ");
        f->at[i] = at + sizeof *s;
        f->n = i + 1;
        at = f->at[i] + 8 * s->n_blocks;
        rc = check_section(f, i, path, err);
    }
    return !rc && at != bytes ? damaged(err, path, at, "there is more than its sections") : rc;
}

int sums_file_open(struct sums_file *f, const char *path, struct brg_error *err)
{
    struct sums_head head = {0};
    struct stat st;
    *f = (struct sums_file){.fd = open(path, O_RDONLY | O_CLOEXEC)};
    if (f->fd < 0)
        return store_failed(err, -errno, path, -1, "open");
    int rc = fstat(f->fd, &st) ? -errno : 0;
    ssize_t got = rc ? rc : store_io_read(f->fd, &head, sizeof head, 0);
    if (got < 0)
        rc = store_failed(err, (int)got, path, -1, "read");
    else if (got < 8 || head.magic != SUMS_MAGIC)
        rc = brg_error_set(err, -EMEDIUMTYPE, "%s is no file of checksums", path);
    else if (got < (ssize_t)sizeof head || head.version != SUMS_VERSION ||
             head.n_sections > SUMS_SECTIONS || head.bytes != (uint64_t)st.st_size ||
             head.checksum != XXH3_64bits(&head, offsetof(struct sums_head, checksum)))
        rc = damaged(err, path, 0, "its head does not fit it");
    else
        rc = read_sections(f, &head, head.bytes, path, err);
    if (rc)
        sums_file_close(f);
    return rc;
}

void sums_file_close(struct sums_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
    f->n = 0;
}

int sums_file_get(const struct sums_file *f, uint32_t section, uint64_t first, size_t n,
                  uint64_t *sums)
{
    ssize_t got = store_io_read(f->fd, sums, 8 * n, f->at[section] + 8 * first);
    return got < 0 ? (int)got : (size_t)got < 8 * n ? -EBADMSG : 0;
}

/* A file on its way: its first bytes wait here and go in one write at the end, as each write is a
 * request to a network file system and head and sections are known last. */
struct draft {
    int fd;
    size_t kept;
    unsigned char first[16 << 10]; /* all of it, where the file has no more than 2,000 blocks */
};

static int put(struct draft *draft, const void *bytes, size_t n, uint64_t at)
{
    const unsigned char *from = bytes;
    size_t here = at < sizeof draft->first ? sizeof draft->first - (size_t)at : 0;
    here = here < n ? here : n;
    if (here) {
        memcpy(draft->first + at, from, here);
        draft->kept = draft->kept > at + here ? draft->kept : (size_t)at + here;
    }
    return here == n ? 0 : store_io_write(draft->fd, from + here, n - here, at + here, NULL);
}

static int put_section(struct draft *draft, struct sums_section section, uint64_t at,
                       sums_source *source, void *context)
{
    uint64_t sums[BATCH];
    XXH3_state_t state;
    int rc = 0;
    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, &section, offsetof(struct sums_section, checksum));
    for (uint64_t first = 0; !rc && first < section.n_blocks;) {
        size_t n = section.n_blocks - first < BATCH ? (size_t)(section.n_blocks - first) : BATCH;
        rc = source(context, first, n, sums);
        if (rc)
            return rc;
        XXH3_64bits_update(&state, sums, 8 * n);
        rc = put(draft, sums, 8 * n, at + sizeof section + 8 * first);
        first += n;
    }
    section.checksum = XXH3_64bits_digest(&state);
    return rc ? rc : put(draft, &section, sizeof section, at);
}

int sums_file_write(int fd, const struct sums_section *sections, uint32_t n,
                    sums_source *const *sources, void *const *contexts)
{
    struct sums_head head = {SUMS_MAGIC, SUMS_VERSION, n, sizeof head, 0};
    struct draft draft = {.fd = fd};
    int rc = 0;
    for (uint32_t i = 0; !rc && i < n; i++) {
        rc = put_section(&draft, sections[i], head.bytes, sources[i], contexts[i]);
        head.bytes += sizeof *sections + 8 * sections[i].n_blocks;
    }
    head.checksum = XXH3_64bits(&head, offsetof(struct sums_head, checksum));
    rc = rc ? rc : put(&draft, &head, sizeof head, 0);
    return rc ? rc : store_io_write(fd, draft.first, draft.kept, 0, NULL);
}
