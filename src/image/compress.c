/* The raw stream on its way into the file.
 *
 * A ring of slots, each with a raw and a packed buffer. The caller fills the newest slot and
 * hands it over; worker threads take slots in order and compress; the caller writes the oldest
 * when the ring is full or at the end. So blocks lie in the file in their order, and the bytes
 * do not depend on the number of threads.
 *
 *        written      compressed / being compressed       filled by the caller
 *   ... [ EMPTY ] -> [ DONE | TAKEN | TAKEN | FULL ] <- [ EMPTY ]
 *        ^ next_write                    ^ next_take     ^ next_fill
 */
#include "image/compress.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>
#include <zstd.h>

#include "base/error.h"
#include "base/io.h"

enum slot_state {
    SLOT_EMPTY,
    SLOT_FULL,
    SLOT_TAKEN,
    SLOT_DONE
};
enum {
    MAX_THREADS = 8
};

struct slot {
    enum slot_state state;
    char *raw, *packed;
    size_t raw_bytes, packed_bytes; /* packed_bytes 0: could not be compressed */
    uint64_t checksum;
};

struct compressor {
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    pthread_t threads[MAX_THREADS];
    unsigned n_threads;
    int stop;

    int fd, level;
    const char *name;
    size_t block_bytes;
    struct slot *slots;
    uint64_t n_slots, next_fill, next_take, next_write;
    ZSTD_CCtx *own; /* for compressing without threads */

    struct brg_block *blocks;
    uint64_t n_blocks, max_blocks, offset, raw_bytes;
};

static unsigned usable_processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

static void slot_pack(struct slot *s, ZSTD_CCtx *zstd, int level)
{
    size_t n = 0;
    if (level > 0) {
        n = zstd ? ZSTD_compressCCtx(zstd, s->packed, ZSTD_compressBound(s->raw_bytes), s->raw,
                                     s->raw_bytes, level)
                 : (size_t)-1;
        if (!zstd || ZSTD_isError(n)) {
            s->packed_bytes = 0;
            return;
        }
    }
    if (n == 0 || n >= s->raw_bytes) { /* stored: the two sizes are equal */
        memcpy(s->packed, s->raw, s->raw_bytes);
        n = s->raw_bytes;
    }
    s->packed_bytes = n;
    s->checksum = XXH3_64bits(s->packed, n);
}

static void *work(void *arg)
{
    struct compressor *c = arg;
    ZSTD_CCtx *zstd = ZSTD_createCCtx();
    pthread_mutex_lock(&c->lock);
    for (;;) {
        struct slot *s = &c->slots[c->next_take % c->n_slots];
        if (s->state == SLOT_FULL && c->next_take < c->next_fill) {
            s->state = SLOT_TAKEN;
            c->next_take++;
            pthread_mutex_unlock(&c->lock);
            slot_pack(s, zstd, c->level);
            pthread_mutex_lock(&c->lock);
            s->state = SLOT_DONE;
            pthread_cond_signal(&c->done);
        } else if (c->stop) {
            break;
        } else {
            pthread_cond_wait(&c->work, &c->lock);
        }
    }
    pthread_mutex_unlock(&c->lock);
    ZSTD_freeCCtx(zstd);
    return NULL;
}

void compressor_destroy(struct compressor *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->stop = 1;
    pthread_cond_broadcast(&c->work);
    pthread_mutex_unlock(&c->lock);
    for (unsigned i = 0; i < c->n_threads; i++)
        pthread_join(c->threads[i], NULL);
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->work);
    pthread_cond_destroy(&c->done);
    for (uint64_t i = 0; c->slots && i < c->n_slots; i++) {
        free(c->slots[i].raw);
        free(c->slots[i].packed);
    }
    ZSTD_freeCCtx(c->own);
    free(c->slots);
    free(c->blocks);
    free(c);
}

static int allocate(struct compressor *c)
{
    c->slots = calloc(c->n_slots, sizeof *c->slots);
    c->blocks = calloc(c->max_blocks ? c->max_blocks : 1, sizeof *c->blocks);
    c->own = ZSTD_createCCtx();
    if (!c->slots || !c->blocks || !c->own)
        return -ENOMEM;
    for (uint64_t i = 0; i < c->n_slots; i++) {
        c->slots[i].raw = malloc(c->block_bytes);
        c->slots[i].packed = malloc(ZSTD_compressBound(c->block_bytes));
        if (!c->slots[i].raw || !c->slots[i].packed)
            return -ENOMEM;
    }
    return 0;
}

int compressor_create(int fd, const char *name, uint64_t data_off,
                      const struct brg_image_options *options, uint64_t max_blocks,
                      struct compressor **out, struct brg_error *err)
{
    unsigned threads = options->threads ? options->threads : usable_processors();
    if (threads > MAX_THREADS)
        threads = MAX_THREADS;
    if (threads > max_blocks)
        threads = (unsigned)max_blocks;
    struct compressor *c = calloc(1, sizeof *c);
    if (!c)
        return brg_error_set(err, -ENOMEM, "no memory to compress an image");
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->work, NULL);
    pthread_cond_init(&c->done, NULL);
    c->fd = fd;
    c->name = name;
    c->level = options->level;
    c->block_bytes = options->block_bytes;
    c->offset = data_off;
    c->max_blocks = max_blocks;
    c->n_slots = 2 * threads + 1;
    if (allocate(c) != 0) {
        compressor_destroy(c);
        return brg_error_set(err, -ENOMEM,
                             "no memory to compress an image: choose a smaller "
                             "block size or fewer threads");
    }
    /* A thread that cannot be started is done without; with none the caller compresses. */
    while (c->n_threads < threads && pthread_create(&c->threads[c->n_threads], NULL, work, c) == 0)
        c->n_threads++;
    *out = c;
    return 0;
}

/* Writes the next block of the file. */
static int put_block(struct compressor *c, const void *packed, size_t bytes, size_t raw_bytes,
                     uint64_t checksum, struct brg_error *err)
{
    int rc = brg_io_pwrite(c->fd, packed, bytes, c->offset, NULL);
    if (rc != 0)
        return brg_error_system(err, rc, "cannot write %s at offset %llu", c->name,
                                (unsigned long long)c->offset);
    c->blocks[c->n_blocks++] = (struct brg_block){
        .off = c->offset,
        .bytes = (uint32_t)bytes,
        .raw_bytes = (uint32_t)raw_bytes,
        .checksum = checksum,
    };
    c->offset += bytes;
    return 0;
}

/* Writes the oldest slot, waiting until it is compressed. */
static int write_oldest(struct compressor *c, struct brg_error *err)
{
    struct slot *s = &c->slots[c->next_write % c->n_slots];
    pthread_mutex_lock(&c->lock);
    while (s->state != SLOT_DONE)
        pthread_cond_wait(&c->done, &c->lock);
    pthread_mutex_unlock(&c->lock);
    if (s->packed_bytes == 0)
        return brg_error_set(err, -ENOMEM,
                             "no memory to compress an image: choose a smaller "
                             "block size, a lower level or fewer threads");
    int rc = put_block(c, s->packed, s->packed_bytes, s->raw_bytes, s->checksum, err);
    if (rc != 0)
        return rc;
    pthread_mutex_lock(&c->lock);
    s->state = SLOT_EMPTY;
    s->raw_bytes = 0;
    c->next_write++;
    pthread_mutex_unlock(&c->lock);
    return 0;
}

/* Hands the newest slot over, and makes sure that the next one is empty. */
static int submit(struct compressor *c, struct brg_error *err)
{
    struct slot *s = &c->slots[c->next_fill % c->n_slots];
    if (c->n_blocks + c->next_fill - c->next_write >= c->max_blocks)
        return brg_error_set(err, -EFBIG, "the sources of the image grew while it was made");
    if (c->n_threads == 0)
        slot_pack(s, c->own, c->level);
    pthread_mutex_lock(&c->lock);
    s->state = c->n_threads ? SLOT_FULL : SLOT_DONE;
    c->next_fill++;
    pthread_cond_signal(&c->work);
    pthread_mutex_unlock(&c->lock);
    return c->next_fill - c->next_write == c->n_slots ? write_oldest(c, err) : 0;
}

void *compressor_room(struct compressor *c, size_t *room)
{
    struct slot *s = &c->slots[c->next_fill % c->n_slots];
    *room = c->block_bytes - s->raw_bytes;
    return s->raw + s->raw_bytes;
}

int compressor_advance(struct compressor *c, size_t n, struct brg_error *err)
{
    struct slot *s = &c->slots[c->next_fill % c->n_slots];
    s->raw_bytes += n;
    c->raw_bytes += n;
    return s->raw_bytes == c->block_bytes ? submit(c, err) : 0;
}

int compressor_copy(struct compressor *c, const struct brg_block *from, const void *packed,
                    struct brg_error *err)
{
    int rc = put_block(c, packed, from->bytes, from->raw_bytes, from->checksum, err);
    if (rc != 0)
        return rc;
    c->raw_bytes += from->raw_bytes;
    return 0;
}

uint64_t compressor_raw_bytes(const struct compressor *c)
{
    return c->raw_bytes;
}

int compressor_finish(struct compressor *c, const struct brg_block **blocks, uint32_t *n_blocks,
                      uint64_t *end, struct brg_error *err)
{
    int rc = 0;
    if (c->slots[c->next_fill % c->n_slots].raw_bytes > 0)
        rc = submit(c, err);
    while (rc == 0 && c->next_write < c->next_fill)
        rc = write_oldest(c, err);
    if (rc != 0)
        return rc;
    *blocks = c->blocks;
    *n_blocks = (uint32_t)c->n_blocks;
    *end = c->offset;
    return 0;
}
