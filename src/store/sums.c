/* See sums.h. */
#include "store/sums.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/io.h"
#include "store/store_io.h"
#include "store/xxh3.h"

/* Of n blocks from `block` on, those in the same group. */
static uint32_t in_group(uint64_t block, uint64_t n)
{
    uint64_t left = SUMS_GROUP - block % SUMS_GROUP;
    return (uint32_t)(n < left ? n : left);
}

void sums_open(struct sums *s, char *page, const char *working, uint64_t block_bytes)
{
    memset(s, 0, offsetof(struct sums, sum));
    s->block_bytes = block_bytes;
    sums_pad_open(&s->pad, page, working);
}

void sums_close(struct sums *s)
{
    sums_pad_close(&s->pad);
}

static int write_sums(struct sums *s)
{
    int rc = 0;
    for (uint32_t done = 0, some; !rc && done < s->n; done += some) {
        some = in_group(s->first + done, s->n - done);
        rc = sums_pad_put(&s->pad, s->sum + done, 8 * (size_t)some, sums_at(s->first + done));
    }
    s->n = 0;
    return rc;
}

static int put_sum(struct sums *s, uint64_t block, uint64_t sum)
{
    if (s->n && block >= s->first && block - s->first < s->n) {
        s->sum[block - s->first] = sum;
        return 0;
    }
    int rc = 0;
    if (s->n && (block != s->first + s->n || s->n == SUMS_IN_MEMORY))
        rc = write_sums(s);
    if (!s->n)
        s->first = block;
    s->sum[s->n++] = sum;
    return rc;
}

static int write_marks(struct sums *s)
{
    static const char ones[SUMS_GROUP] = {[0 ... SUMS_GROUP - 1] = 1};
    int rc = 0;
    for (uint64_t b = s->mark_first, n = s->mark_n; !rc && n && !s->mark_written;) {
        uint32_t some = in_group(b, n);
        rc = sums_pad_put(&s->pad, ones, some, sums_mark_at(b));
        b += some;
        n -= some;
    }
    s->mark_written = rc == 0;
    return rc;
}

/* The last run of marks stays in memory, so that many small writes to a block mark it once. */
static int put_mark(struct sums *s, uint64_t block)
{
    int rc = 0;
    s->marked = 1;
    if (block - s->mark_first < s->mark_n)
        return 0;
    if (block != s->mark_first + s->mark_n || s->mark_written) {
        rc = write_marks(s);
        s->mark_first = block;
        s->mark_n = 0;
    }
    s->mark_n++;
    s->mark_written = 0;
    return rc;
}

static int put_marks(struct sums *s, uint64_t bytes, uint64_t offset)
{
    uint64_t block = offset / s->block_bytes, last = (offset + bytes - 1) / s->block_bytes;
    int rc = 0;
    for (; !rc && block <= last; block++)
        rc = put_mark(s, block);
    return rc;
}

static int write_mark(struct sums *s, uint64_t block, char mark)
{
    if (!mark && block - s->mark_first < s->mark_n)
        s->mark_n = 0;
    return sums_pad_put(&s->pad, &mark, 1, sums_mark_at(block));
}

static uint64_t stream_block(const struct sums *s)
{
    return (s->stream_at - 1) / s->block_bytes;
}

int sums_stream(const struct sums *s, uint64_t *from, uint64_t *until)
{
    if (!s->streaming)
        return 0;
    *from = stream_block(s) * s->block_bytes;
    *until = *from + s->block_bytes;
    return 1;
}

int sums_end_stream(struct sums *s)
{
    int was = s->streaming, marked = s->stream_marked;
    s->streaming = s->stream_marked = 0;
    s->marked |= was;
    return was && !marked ? put_mark(s, stream_block(s)) : 0;
}

/* The sum of what the stream has seen is that of its block as it is now. */
static int know_stream(struct sums *s)
{
    int rc = s->stream_marked ? write_mark(s, stream_block(s), 0) : 0;
    s->stream_marked = 0;
    int put = put_sum(s, stream_block(s), xxh3_kept(XXH3_64bits_digest(&s->stream)));
    return rc ? rc : put;
}

/* A part of one block that is not all of it. */
static int note_part(struct sums *s, const void *buf, size_t bytes, uint64_t offset)
{
    int continues = s->streaming && offset == s->stream_at && offset % s->block_bytes;
    int rc = continues ? 0 : sums_end_stream(s);
    if (!continues && offset % s->block_bytes) {
        int marked = put_mark(s, offset / s->block_bytes);
        return rc ? rc : marked;
    }
    if (!continues) {
        XXH3_64bits_reset(&s->stream);
        s->streaming = 1;
    }
    xxh3_update(&s->stream, buf, bytes);
    s->stream_at = offset + bytes;
    if (rc || s->stream_at % s->block_bytes)
        return rc;
    rc = know_stream(s);
    s->streaming = 0;
    return rc;
}

/* What the stream saw of this block is gone; if it was marked, it remains so. */
static int put_whole(struct sums *s, uint64_t block, const void *buf)
{
    if (s->streaming && stream_block(s) == block) {
        s->marked |= s->stream_marked;
        s->streaming = s->stream_marked = 0;
    }
    return put_sum(s, block, sums_of(buf, s->block_bytes));
}

static int write_all(struct sums *s)
{
    int sums = write_sums(s), marks = write_marks(s);
    return sums ? sums : marks;
}

int sums_note(struct sums *s, const void *buf, size_t bytes, uint64_t offset)
{
    const char *at = buf;
    int rc = 0;
    while (!rc && bytes) {
        uint64_t left = s->block_bytes - offset % s->block_bytes;
        size_t n = bytes < left ? bytes : (size_t)left;
        if (n == s->block_bytes)
            rc = put_whole(s, offset / s->block_bytes, at);
        else
            rc = note_part(s, at, n, offset);
        at += n;
        offset += n;
        bytes -= n;
    }
    return rc || !s->through ? rc : write_all(s);
}

/* ---- before the ranks have met ---- */

/* Bytes of the first block, if it begins before, and of the last one, if it ends behind. */
struct edges {
    size_t head, tail;
};

static struct edges edges_of(const struct sums *s, size_t bytes, uint64_t offset)
{
    struct edges e = {.head = (size_t)(-offset % s->block_bytes)};
    if (e.head > bytes)
        e.head = bytes;
    e.tail = (bytes - e.head) % s->block_bytes;
    return e;
}

int sums_have_room(uint64_t block_bytes, size_t bytes, uint64_t offset)
{
    return (offset + bytes - 1) / block_bytes - offset / block_bytes < SUMS_IN_MEMORY;
}

void sums_note_early(struct sums *s, const void *buf, size_t bytes, uint64_t offset)
{
    struct edges e = edges_of(s, bytes, offset);
    const char *at = (const char *)buf + e.head;
    offset += e.head;
    for (uint64_t n = (bytes - e.head - e.tail) / s->block_bytes; n; n--) {
        (void)put_whole(s, offset / s->block_bytes, at); /* has room */
        at += s->block_bytes;
        offset += s->block_bytes;
    }
}

int sums_keep_early(struct sums *s, const void *buf, size_t bytes, uint64_t offset, int shared)
{
    struct edges e = edges_of(s, bytes, offset);
    size_t rest = bytes - e.tail;
    int rc;
    if (!shared) {
        rc = e.head ? note_part(s, buf, e.head, offset) : 0;
        return rc || !e.tail ? rc : note_part(s, (const char *)buf + rest, e.tail, offset + rest);
    }
    rc = sums_end_stream(s);
    if (!rc && e.head)
        rc = put_mark(s, offset / s->block_bytes);
    return rc || !e.tail ? rc : put_mark(s, (offset + rest) / s->block_bytes);
}

void sums_forget_early(struct sums *s)
{
    s->n = 0;
}

int sums_doubt_early(struct sums *s, size_t bytes, uint64_t offset)
{
    int rc = sums_end_stream(s);
    s->n = 0;
    return rc ? rc : put_marks(s, bytes, offset);
}

int sums_mark(struct sums *s, uint64_t bytes, uint64_t offset)
{
    int rc = put_marks(s, bytes, offset);
    return rc ? rc : write_marks(s);
}

/* ---- ending ---- */

int sums_end_call(struct sums *s, uint64_t size)
{
    int rc = 0;
    if (s->streaming && s->stream_at == size)
        rc = know_stream(s);
    else if (s->streaming && !s->stream_marked) {
        rc = write_mark(s, stream_block(s), 1);
        s->stream_marked = 1;
    }
    int rest = write_all(s);
    return rc ? rc : rest;
}

int sums_flush(struct sums *s)
{
    int rc = sums_end_stream(s), rest = write_all(s);
    return rc ? rc : rest;
}

int sums_seed(struct sums *s, const struct sums_file *file, int section, uint64_t size)
{
    uint64_t n_blocks = (size + s->block_bytes - 1) / s->block_bytes, whole = size / s->block_bytes;
    int rc = 0;
    for (uint64_t b = 0; !rc && section >= 0 && b < whole;) {
        uint64_t sums[SUMS_GROUP];
        uint32_t n = in_group(b, whole - b);
        rc = sums_file_get(file, (uint32_t)section, b, n, sums);
        if (!rc)
            rc = sums_pad_put(&s->pad, sums, 8 * (size_t)n, sums_at(b));
        b += n;
    }
    s->mark_first = section >= 0 ? whole : 0;
    s->mark_n = n_blocks - s->mark_first;
    s->mark_written = 0;
    return rc ? rc : write_marks(s);
}

static int read_back(int data, uint64_t from, uint64_t to, uint64_t *sum, uint64_t *failed)
{
    char bytes[64 << 10];
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    while (from < to) {
        size_t n = to - from < sizeof bytes ? (size_t)(to - from) : sizeof bytes;
        ssize_t got = store_io_read(data, bytes, n, from);
        if (got < (ssize_t)n) {
            *failed = from;
            return got < 0 ? (int)got : -EIO;
        }
        xxh3_update(&state, bytes, n);
        from += n;
    }
    *sum = xxh3_kept(XXH3_64bits_digest(&state));
    return 0;
}

int sums_settle(struct sums *s, int data, uint64_t size, uint64_t first, uint64_t end,
                uint64_t *failed)
{
    int rc = 0;
    while (!rc && first < end) {
        uint32_t n = in_group(first, end - first);
        char marks[SUMS_GROUP];
        rc = sums_pad_get(&s->pad, marks, n, sums_mark_at(first));
        *failed = first * s->block_bytes;
        for (uint32_t i = 0; !rc && i < n; i++) {
            uint64_t from = (first + i) * s->block_bytes, sum = 0;
            uint64_t to = from + s->block_bytes < size ? from + s->block_bytes : size;
            if (!marks[i])
                continue;
            rc = read_back(data, from, to, &sum, failed);
            rc = rc ? rc : put_sum(s, first + i, sum);
        }
        first += n;
    }
    return rc ? rc : write_sums(s);
}

int sums_get(void *sums, uint64_t first, size_t n, uint64_t *out)
{
    struct sums *s = sums;
    while (n) {
        uint32_t some = in_group(first, n);
        int rc = sums_pad_get(&s->pad, out, 8 * (size_t)some, sums_at(first));
        if (rc)
            return rc;
        first += some;
        out += some;
        n -= some;
    }
    return 0;
}
