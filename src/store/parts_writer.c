/* See parts.h: one rank's part. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/parts.h"
#include "store/store_io.h"
#include "store/xxh3.h"

#define N_RECORDS (sizeof((struct parts_writer *)0)->record / sizeof(struct parts_record))
#define N_SUMS (sizeof((struct parts_writer *)0)->sum / sizeof(uint64_t))

void parts_name(char name[PARTS_NAME], const char *folder, uint64_t number, const char *suffix)
{
    snprintf(name, PARTS_NAME, "%s/%06" PRIu64 "%s", folder, number, suffix);
}

static int make(const char *folder, uint32_t number, const char *suffix, unsigned mode)
{
    char name[PARTS_NAME];
    parts_name(name, folder, number, suffix);
    return store_io_open(name, O_RDWR | O_CREAT | O_EXCL, mode);
}

int parts_writer_open(struct parts_writer *w, const char *folder, uint32_t number, unsigned mode,
                      uint64_t block_bytes)
{
    memset(w, 0, sizeof *w);
    w->block_bytes = block_bytes;
    XXH3_64bits_reset(&w->stream);
    w->data = make(folder, number, "", 0600);
    w->log = w->data < 0 ? -1 : make(folder, number, ".log", 0600);
    w->sums = w->log < 0 ? -1 : make(folder, number, ".sums", 0600);
    int rc = w->data < 0 ? w->data : w->log < 0 ? w->log : w->sums < 0 ? w->sums : 0;
    if (!rc && fchmod(w->data, (mode_t)mode))
        rc = -errno;
    return rc;
}

static int close_all(struct parts_writer *w)
{
    int *fds[] = {&w->data, &w->log, &w->sums}, rc = 0;
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
        if (*fds[i] >= 0 && close(*fds[i]) && !rc)
            rc = -errno;
        *fds[i] = -1;
    }
    return rc;
}

void parts_writer_close(struct parts_writer *w)
{
    close_all(w);
}

static int write_records(struct parts_writer *w)
{
    size_t n = w->n_records * sizeof *w->record;
    int rc = store_io_write(w->log, w->record, n, w->logged, NULL);
    w->logged += n;
    w->n_records = 0;
    return rc;
}

static int write_sums(struct parts_writer *w)
{
    size_t n = w->n_sums * sizeof *w->sum;
    int rc = store_io_write(w->sums, w->sum, n, w->summed, NULL);
    w->summed += n;
    w->n_sums = 0;
    return rc;
}

/* The byte of the file that lies at `at` of the part; its record has not left memory. */
static uint64_t offset_of(const struct parts_writer *w, uint64_t at)
{
    const struct parts_record *r = &w->record[w->n_records];
    while (r-- > w->record)
        if (at >= r->at)
            return r->offset + (at - r->at);
    return 0;
}

int parts_writer_end_call(struct parts_writer *w, uint64_t *failed)
{
    size_t done = 0;
    int rc = store_io_write(w->data, w->held, w->n_held, w->at - w->n_held, &done);
    if (rc)
        *failed = offset_of(w, w->at - w->n_held + done);
    w->n_held = 0;
    return rc;
}

static int record(struct parts_writer *w, size_t bytes, uint64_t offset, uint64_t sequence)
{
    struct parts_record *last = &w->record[w->n_records ? w->n_records - 1 : 0];
    int rc = 0;
    if (w->n_records && last->sequence == sequence && last->offset + last->bytes == offset) {
        last->bytes += bytes;
        return 0;
    }
    if (w->n_records == N_RECORDS)
        rc = write_records(w);
    w->record[w->n_records++] = (struct parts_record){offset, bytes, w->at, sequence};
    return rc;
}

static int end_block(struct parts_writer *w)
{
    int rc = w->n_sums == N_SUMS ? write_sums(w) : 0;
    w->sum[w->n_sums++] = xxh3_kept(XXH3_64bits_digest(&w->stream));
    XXH3_64bits_reset(&w->stream);
    return rc;
}

/* What does not fit the bytes held goes past them. */
static int write_or_hold(struct parts_writer *w, const void *buf, size_t bytes, uint64_t offset,
                         uint64_t *failed)
{
    size_t done = 0;
    int full = w->n_held + bytes > PARTS_HELD || w->n_records == N_RECORDS;
    int rc = full ? parts_writer_end_call(w, failed) : 0;
    if (!rc && bytes < PARTS_HELD) {
        memcpy(w->held + w->n_held, buf, bytes);
        w->n_held += (uint32_t)bytes;
    } else if (!rc) {
        rc = store_io_write(w->data, buf, bytes, w->at, &done);
        *failed = offset + done;
    }
    return rc;
}

int parts_writer_put(struct parts_writer *w, const void *buf, size_t bytes, uint64_t offset,
                     uint64_t sequence, uint64_t *failed)
{
    const char *at = buf;
    int rc = write_or_hold(w, buf, bytes, offset, failed);
    if (!rc) {
        *failed = offset;
        rc = record(w, bytes, offset, sequence);
    }
    while (!rc && bytes) {
        uint64_t left = w->block_bytes - w->at % w->block_bytes;
        size_t n = bytes < left ? bytes : (size_t)left;
        xxh3_update(&w->stream, at, n);
        at += n;
        bytes -= n;
        w->at += n;
        if (n == left)
            rc = end_block(w);
    }
    return rc;
}

int parts_writer_flush(struct parts_writer *w, int sync)
{
    uint64_t failed;
    int rc = parts_writer_end_call(w, &failed);
    rc = rc || !(w->at % w->block_bytes) ? rc : end_block(w);
    rc = rc ? rc : write_records(w);
    rc = rc ? rc : write_sums(w);
    rc = rc || !sync ? rc : store_io_sync(w->data);
    return rc ? rc : close_all(w);
}
